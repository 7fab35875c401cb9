/** A piece of work that a member holds. */
export interface Hold {
  member: string;
  /** The member that takes the piece over as soon as its holder has given it back. */
  wanted_by: string | null;
}

/** Holds of one kind of work, and the names that a member offers; counted, so that a round need not read all. */
export class Holds {
  readonly offered = new Set<string>();
  /** Offered names that no member holds. */
  private readonly unheld = new Set<string>();
  private readonly by_name = new Map<string, Hold>();
  private readonly counts = new Map<string, number>();
  /** Names that another member than their holder wants. */
  private readonly wanted = new Set<string>();

  get size(): number {
    return this.by_name.size;
  }

  entries(): IterableIterator<[name: string, hold: Hold]> {
    return this.by_name.entries();
  }

  get(name: string): Hold | undefined {
    return this.by_name.get(name);
  }

  set(name: string, hold: Hold): void {
    this.delete(name);
    this.by_name.set(name, hold);
    this.count(hold.member, 1);
    this.unheld.delete(name);
    if (hold.wanted_by !== null) this.wanted.add(name);
  }

  delete(name: string): void {
    const hold = this.by_name.get(name);
    if (hold === undefined) return;
    this.by_name.delete(name);
    this.count(hold.member, -1);
    this.wanted.delete(name);
    if (this.offered.has(name)) this.unheld.add(name);
  }

  clear(): void {
    for (const name of [...this.by_name.keys()]) this.delete(name);
  }

  offer(name: string): void {
    this.offered.add(name);
    if (!this.by_name.has(name)) this.unheld.add(name);
  }

  withdraw(name: string): void {
    this.offered.delete(name);
    this.unheld.delete(name);
  }

  /** Offered names that no active member holds. */
  free(isLiving: (member: string) => boolean): string[] {
    const free = [...this.unheld];
    if ([...this.counts.keys()].every(isLiving)) return free;
    for (const name of this.offered) {
      const hold = this.by_name.get(name);
      if (hold !== undefined && !isLiving(hold.member)) free.push(name);
    }
    return free;
  }

  /** Number of pieces of each member, and of all active ones. A wanted piece counts for the member that wants it. */
  loads(members: readonly string[], isLiving: (member: string) => boolean): [loads: Map<string, number>, held: number] {
    const loads = new Map(members.map((member) => [member, this.counts.get(member) ?? 0]));
    let held = 0;
    for (const [member, count] of this.counts) if (isLiving(member)) held += count;
    const add = (member: string, change: number) => {
      const load = loads.get(member);
      if (load !== undefined) loads.set(member, load + change);
    };
    for (const name of this.wanted) {
      const { member, wanted_by } = this.by_name.get(name)!;
      if (!isLiving(member) || !isLiving(wanted_by!)) continue;
      add(member, -1);
      add(wanted_by!, 1);
    }
    return [loads, held];
  }

  private count(member: string, change: number): void {
    const count = (this.counts.get(member) ?? 0) + change;
    if (count === 0) this.counts.delete(member);
    else this.counts.set(member, count);
  }
}
