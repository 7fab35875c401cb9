import { divide, type Division } from './division';
import { type Hold, Holds } from './holds';
import { MoveCounts, type Moves } from './moves';

/** A hold as the database reports it: kind, name, holder (null: it ended), next holder, number of the change. */
export type ChangedHold = [kind: string, name: string, member: string | null, wanted_by: string | null, change: number];

export interface LiveMembers {
  all: ReadonlySet<string>;
  by_kind: ReadonlyMap<string, readonly string[]>;
}

/** The kind of a piece of work: its name up to the first colon. */
export const kindOf = (name: string): string => name.slice(0, Math.max(0, name.indexOf(':')));

/** This process's view of a kind of work: the names that it offers, and the holder of each name. */
export class KindView {
  /** Names whose work runs in this process, or is about to end. */
  readonly working = new Set<string>();
  /** Names that this process has given up, but not yet released in the database. */
  readonly release = new Set<string>();
  /** Names that this process holds in the database. */
  readonly mine = new Set<string>();
  /** Number of the last change in this view. */
  since = 0;
  private readonly holds = new Holds();
  private readonly moves = new MoveCounts();
  private waited: ReadonlySet<string> = new Set();
  private filling = true;
  /** The view has changed since a plan without changes: otherwise another plan is not worth its time. */
  private unsettled = true;
  private was_left = false;

  constructor(
    readonly kind: string,
    private readonly me: string,
  ) {}

  /** Whether this process does this kind of work; others leave no names of a kind to a process that has left it. */
  get active(): boolean {
    return this.offered.size > 0;
  }

  /** Names that this process offers to do. */
  get offered(): ReadonlySet<string> {
    return this.holds.offered;
  }

  offer(name: string): void {
    this.holds.offer(name);
    // Changes were not read while this process had left the kind.
    if (this.was_left) this.reset();
    this.was_left = false;
    this.unsettled = true;
  }

  withdraw(name: string): void {
    this.holds.withdraw(name);
    this.was_left = !this.active;
    this.unsettled = true;
  }

  /** Drops all holds: the next changes must be read from 0. */
  reset(): void {
    this.holds.clear();
    this.mine.clear();
    this.moves.reset();
    this.since = 0;
    this.unsettled = true;
  }

  apply([, name, member, wanted_by, change]: ChangedHold): void {
    this.since = Math.max(this.since, change);
    if (member === null) this.end(name);
    else this.hold(name, { member, wanted_by });
  }

  taken(name: string): void {
    this.hold(name, { member: this.me, wanted_by: null });
  }

  given(name: string): void {
    if (this.mine.has(name)) this.end(name);
    this.moves.lose(name);
  }

  /** Names that this process took, took over from other members and gave back since the last call. */
  takeMoves(): Moves {
    return this.moves.take();
  }

  /** The set of active members has changed. */
  membersChanged(): void {
    this.unsettled = true;
  }

  /** Names whose work must end here: this process no longer holds them, or another active one wants them. */
  lost({ all }: LiveMembers): string[] {
    if (!this.unsettled) return [];
    return [...this.working].filter((name) => {
      const hold = this.holds.get(name);
      return hold?.member !== this.me || (hold.wanted_by !== null && all.has(hold.wanted_by));
    });
  }

  /** @param regular whether a whole round has passed, and names may be taken over from other members */
  plan({ all, by_kind }: LiveMembers, regular: boolean): Pick<Division, 'take' | 'want'> {
    const members = by_kind.get(this.kind) ?? [];
    if (!this.unsettled || !this.active || !members.includes(this.me)) return { take: [], want: [] };
    const { take, want, waiting, filling } = divide({
      me: this.me,
      members,
      isLiving: (member) => all.has(member),
      holds: this.holds,
      waited: this.waited,
      filling: this.filling,
    });
    if (!regular) return { take, want: [] };
    this.unsettled = take.length + want.length + waiting.length > 0 || filling !== this.filling;
    this.waited = new Set(waiting);
    this.filling = filling;
    return { take, want };
  }

  private hold(name: string, hold: Hold): void {
    const holder = this.holds.get(name)?.member ?? this.me;
    if (hold.member === this.me) this.moves.gain(name, holder !== this.me);
    else this.moves.lose(name);
    this.holds.set(name, hold);
    if (hold.member === this.me) this.mine.add(name);
    else this.mine.delete(name);
    this.unsettled = true;
  }

  private end(name: string): void {
    const holder = this.holds.get(name)?.member ?? this.me;
    if (holder !== this.me) this.moves.leave(name);
    this.moves.lose(name);
    this.holds.delete(name);
    this.mine.delete(name);
    this.unsettled = true;
  }
}
