import { divide, type Division, type Hold } from './division';

/** A hold as the database reports it: kind, name, holder (null: it ended), next holder, number of the change. */
export type ChangedHold = [kind: string, name: string, member: string | null, wanted_by: string | null, change: number];

export interface LivingMembers {
  all: ReadonlySet<string>;
  by_kind: ReadonlyMap<string, readonly string[]>;
}

/** The kind of a piece of work: its name up to the first colon. */
export const kindOf = (name: string): string => name.slice(0, Math.max(0, name.indexOf(':')));

/** One kind of work as this process knows it: names that it offers, and who holds which name. */
export class KindView {
  readonly offered = new Set<string>();
  /** Names that this process has given up, and that are not yet given back in the database. */
  readonly release = new Set<string>();
  /** Number of the last change that is known here. */
  since = 0;
  private readonly holds = new Map<string, Hold>();
  private waited: ReadonlySet<string> = new Set();
  private filling = true;

  constructor(
    readonly kind: string,
    private readonly me: string,
  ) {}

  /** Forgets all holds: the next changes are to be those since 0. */
  reset(): void {
    this.holds.clear();
    this.since = 0;
  }

  apply([, name, member, wanted_by, change]: ChangedHold): void {
    this.since = Math.max(this.since, change);
    if (member === null) this.holds.delete(name);
    else this.holds.set(name, { member, wanted_by });
  }

  taken(name: string): void {
    this.holds.set(name, { member: this.me, wanted_by: null });
  }

  given(name: string): void {
    if (this.holds.get(name)?.member === this.me) this.holds.delete(name);
  }

  /** Names that this process holds in the database. */
  mine(): string[] {
    return [...this.holds].flatMap(([name, { member }]) => (member === this.me ? [name] : []));
  }

  /** Whether this process holds the name, and no other living one wants it. */
  isKept(name: string, { all }: LivingMembers): boolean {
    const hold = this.holds.get(name);
    return hold?.member === this.me && (hold.wanted_by === null || !all.has(hold.wanted_by));
  }

  /** @param regular whether a whole round has passed, and names may be taken over from other members */
  plan({ all, by_kind }: LivingMembers, regular: boolean): Pick<Division, 'take' | 'want'> {
    const { take, want, waiting, filling } = divide({
      me: this.me,
      members: by_kind.get(this.kind)!,
      isLiving: (member) => all.has(member),
      offered: this.offered,
      holds: this.holds,
      waited: this.waited,
      filling: this.filling,
    });
    if (!regular) return { take, want: [] };
    this.waited = new Set(waiting);
    this.filling = filling;
    return { take, want };
  }
}
