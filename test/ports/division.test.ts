import fc from 'fast-check';
import { divide, MAX_MOVES } from '../../engines/leases/division';
import { Holds } from '../../engines/leases/holds';

/** Members that see the same state, one round after the other. */
class Table {
  readonly holds = new Holds();
  private readonly waited = new Map<string, ReadonlySet<string>>();
  private readonly filling = new Map<string, boolean>();
  moves = 0;

  constructor(
    readonly members: string[],
    names: Iterable<string>,
  ) {
    for (const name of names) this.holds.offer(name);
    this.settle();
  }

  /** One round of every member; answers whether anything has changed. */
  round(): boolean {
    let changed = false;
    const living = new Set(this.members);
    for (const me of this.members) {
      const { take, want, waiting, filling } = divide({
        me,
        members: this.members,
        isLiving: (member) => living.has(member),
        holds: this.holds,
        waited: this.waited.get(me) ?? new Set(),
        filling: this.filling.get(me) ?? true,
      });
      expect(want.length).toBeLessThanOrEqual(MAX_MOVES);
      this.waited.set(me, new Set(waiting));
      this.filling.set(me, filling);
      for (const name of take) this.holds.set(name, { member: me, wanted_by: null });
      for (const name of want) this.holds.set(name, { member: me, wanted_by: null });
      this.moves += want.length;
      changed ||= take.length + want.length > 0;
    }
    return changed;
  }

  settle(): void {
    for (let rounds = 0; this.round(); rounds += 1)
      expect(rounds).toBeLessThan(20 + this.holds.offered.size / MAX_MOVES);
  }

  whose(): Map<string, string> {
    return new Map([...this.holds.entries()].map(([name, { member }]) => [name, member]));
  }

  load(member: string): number {
    return [...this.holds.entries()].filter(([, hold]) => hold.member === member).length;
  }

  remove(name: string): void {
    this.holds.withdraw(name);
    this.holds.delete(name);
  }
}

const moved = (before: Map<string, string>, after: Map<string, string>) =>
  [...before].filter(([name, member]) => after.has(name) && after.get(name) !== member).length;
const namesOf = (count: number) => Array.from({ length: count }, (_, n) => `twitch:${n * 7919}`);
const membersOf = (count: number) => Array.from({ length: count }, (_, n) => `member-${n}`);
const sizes = fc.record({ members: fc.integer({ min: 1, max: 12 }), names: fc.integer({ min: 12, max: 400 }) });
const RUNS = { numRuns: 60 };

test('counts of holds agree with what is held, whatever comes in whatever order', () => {
  const member = fc.constantFrom('a', 'b', 'dead');
  const step = fc.record({
    what: fc.constantFrom('offer', 'withdraw', 'set', 'delete'),
    name: fc.constantFrom('1', '2', '3', '4'),
    hold: fc.record({ member, wanted_by: fc.option(member) }),
  });
  const isLiving = (one: string) => one !== 'dead';
  fc.assert(
    fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
      const holds = new Holds();
      for (const { what, name, hold } of steps) {
        if (what === 'set') holds.set(name, hold);
        else holds[what as 'offer' | 'withdraw' | 'delete'](name);
      }
      const living = [...holds.entries()].filter(([, hold]) => isLiving(hold.member));
      const owners = living.map(([, { member, wanted_by }]) =>
        wanted_by !== null && isLiving(wanted_by) ? wanted_by : member,
      );
      const load = (one: string) => owners.filter((owner) => owner === one).length;
      const [loads, held] = holds.loads(['a', 'b'], isLiving);
      expect([held, loads.get('a'), loads.get('b')]).toEqual([living.length, load('a'), load('b')]);
      const names = new Set(living.map(([name]) => name));
      expect(holds.free(isLiving).sort()).toEqual([...holds.offered].filter((name) => !names.has(name)).sort());
    }),
  );
});

describe('work divided by rendezvous hashing with sticky holds', () => {
  test('every name is held, by none more than its fair share', () => {
    fc.assert(
      fc.property(sizes, ({ members, names }) => {
        const table = new Table(membersOf(members), namesOf(names));
        expect(table.holds.size).toBe(names);
        for (const member of table.members) expect(table.load(member)).toBeLessThanOrEqual(Math.ceil(names / members));
      }),
      RUNS,
    );
  });

  test('a name that comes or goes moves no other', () => {
    fc.assert(
      fc.property(sizes, fc.nat(), fc.uuid(), (size, at, added) => {
        const table = new Table(membersOf(size.members), namesOf(size.names));
        const before = table.whose();
        table.holds.offer(`spotify:${added}`);
        table.settle();
        expect(table.holds.size).toBe(size.names + 1);
        expect(moved(before, table.whose())).toBe(0);
        table.remove(`spotify:${added}`);
        table.settle();
        table.remove([...table.holds.offered][at % table.holds.size]!);
        table.settle();
        expect(moved(before, table.whose())).toBe(0);
      }),
      RUNS,
    );
  });

  test.each([1_000, 100_000])('of %s names one that comes or goes moves no other', (count) => {
    const table = new Table(membersOf(4), namesOf(count));
    const before = table.whose();
    table.holds.offer('spotify:new');
    table.settle();
    table.remove('twitch:0');
    table.settle();
    expect(moved(before, table.whose())).toBe(0);
    expect(table.holds.size).toBe(count);
  });

  test('a member that joins is given its fair share, and nothing else moves', () => {
    fc.assert(
      fc.property(sizes, ({ members, names }) => {
        const table = new Table(membersOf(members), namesOf(names));
        const before = table.whose();
        table.members.push('joined');
        table.settle();
        const share = Math.floor(names / (members + 1));
        expect(moved(before, table.whose())).toBe(table.load('joined'));
        expect(table.load('joined')).toBeLessThanOrEqual(share + 1);
        expect(table.load('joined')).toBeGreaterThanOrEqual(Math.max(0, share - members));
      }),
      RUNS,
    );
  });

  test('a member that goes leaves its names to the others, and nothing else moves', () => {
    fc.assert(
      fc.property(sizes, ({ members, names }) => {
        const table = new Table(membersOf(members + 1), namesOf(names));
        const before = table.whose();
        const share = table.load(table.members.pop()!);
        table.settle();
        expect(moved(before, table.whose())).toBe(share);
        for (const member of table.members) expect(table.load(member)).toBeLessThanOrEqual(Math.ceil(names / members));
      }),
      RUNS,
    );
  });

  test('a free name that its first choice does not take is taken by another member a round later', () => {
    const holds = new Holds();
    for (const name of namesOf(50)) holds.offer(name);
    const input = { members: ['me', 'other'], isLiving: () => true, holds, filling: true };
    const { take, waiting } = divide({ ...input, me: 'me', waited: new Set() });
    expect([take.length, waiting.length]).toEqual([25, 25]);
    const later = divide({ ...input, me: 'me', waited: new Set(waiting) });
    expect(later.take).toEqual(expect.arrayContaining(waiting));
    expect(divide({ ...input, me: 'other', waited: new Set() }).take.sort()).toEqual(waiting.sort());
  });
});
