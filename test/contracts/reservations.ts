import { v4 } from 'uuid';
import type { Caller } from '../../access/authentication/caller';
import { handle } from '../../app/write-path/command-handler';
import { load } from '../../app/write-path/aggregate-cache';
import {
  release,
  rename,
  reservation,
  reservationStream,
  reserve,
  Taken,
  transfer,
} from '../../domain/common/reservations';
import type { ReservationCommand } from '../../domain/common/reservations';
import { RevisionConflict, type EventStore } from '../../engines/event-store/port';
import type { Decider } from '../../kernel/decider';

type ShelfEvent = { type: 'shelf:named'; name: string | null };
type ShelfCommand = { name: string | null };
interface Shelf {
  name: string | null;
}

const shelf: Decider<Shelf, ShelfCommand, ShelfEvent> = {
  initial: { name: null },
  decide: (state, { name }) => (state.name === name ? [] : [{ type: 'shelf:named', name }]),
  evolve: (_state, { name }) => ({ name }),
};

const KIND = 'shelf';

/** What reservations keep on every event store, whoever races. */
export function reservationContract(
  name: string,
  makeStore: () => Promise<{ events: EventStore; close(): Promise<void> }>,
): void {
  describe(`reservations: ${name}`, () => {
    let on: Awaited<ReturnType<typeof makeStore>>;
    beforeEach(async () => {
      on = await makeStore();
    });
    afterEach(() => on.close());

    const context = () => ({ correlation_id: v4(), trace: null, ip: '127.0.0.1', now: 0, idempotency_seed: null });
    /** Lost races are run again until they are decided, as a client does that is answered with 503. */
    async function decided(id: string, command: ShelfCommand, reserving: (held: Shelf) => ReservationCommand[]) {
      for (;;) {
        let before: Shelf = shelf.initial;
        try {
          return await handle(
            { caller: {} as Caller, context: context() },
            {
              events: on.events,
              commit: (_request, writes) => on.events.append(writes, {}),
              awaitShown: async () => {},
            },
            {
              decider: shelf,
              stream: id,
              command,
              precondition: (state) => void (before = state),
              reservations: () => reserving(before),
            },
          );
        } catch (error) {
          if (!(error instanceof RevisionConflict)) throw error;
        }
      }
    }
    /** Takes the first name, or another in place of the one it has. */
    const name_it = (id: string, name: string) =>
      decided(id, { name }, (held) =>
        held.name === null ? [reserve(KIND, name, id)] : [rename(KIND, id, held.name, name)],
      );
    const clear = (id: string) =>
      decided(id, { name: null }, ({ name }) => (name === null ? [] : [release(KIND, name, id)]));

    const ownerOf = async (value: string) =>
      (await load(on.events, reservation, reservationStream(KIND, value)))?.state.owner ?? null;
    const nameOf = async (id: string) => (await load(on.events, shelf, id))?.state.name ?? null;
    /** Every name is held by the shelf that has it, and by none where no shelf has it. */
    async function expectConsistent(ids: readonly string[], values: readonly string[]) {
      const held = new Map(await Promise.all(ids.map(async (id) => [await nameOf(id), id] as const)));
      for (const value of values) expect([value, await ownerOf(value)]).toEqual([value, held.get(value) ?? null]);
    }
    const ids = Array.from({ length: 20 }, (_, n) => `shelf-${n}`);
    const reasons = (outcomes: readonly PromiseSettledResult<unknown>[]) =>
      outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason as unknown] : []));

    test('one name, twenty at once: one gets it, the others are told; renaming gives it back', async () => {
      const outcomes = await Promise.allSettled(ids.map((id) => name_it(id, 'the-one')));
      const winners = ids.filter((_, n) => outcomes[n]!.status === 'fulfilled');
      expect(winners).toHaveLength(1);
      expect(reasons(outcomes).filter((reason) => !(reason instanceof Taken))).toEqual([]);
      const loser = ids.find((id) => id !== winners[0])!;
      expect(await on.events.read(loser)).toEqual([]);
      await name_it(winners[0]!, 'another');
      await name_it(loser, 'the-one');
      await expect(name_it(`${loser}-x`, 'another')).rejects.toBeInstanceOf(Taken);
      await expectConsistent(ids, ['the-one', 'another']);
    });

    test('twenty rename to one name at once: one has it, and its old name is free; the others keep theirs', async () => {
      const own = (id: string) => `own-${id}`;
      await Promise.all(ids.map((id) => name_it(id, own(id))));
      const outcomes = await Promise.allSettled(ids.map((id) => name_it(id, 'wanted')));
      expect(outcomes.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
      await expectConsistent(ids, ['wanted', ...ids.map(own)]);
    });

    test('names that are taken, exchanged and given back all at once are each of one shelf in the end', async () => {
      const values = ['red', 'green', 'blue', 'grey'];
      const four = ids.slice(0, 4);
      for (let round = 0; round < 6; round += 1) {
        const outcomes = await Promise.allSettled(
          four.map((id, n) => (round % 3 === 2 && n === 0 ? clear(id) : name_it(id, values[(n + round) % 4]!))),
        );
        expect(reasons(outcomes).filter((reason) => !(reason instanceof Taken))).toEqual([]);
        await expectConsistent(four, values);
      }
    });

    test('a name that is passed on while its owner renames is of one of them', async () => {
      for (let round = 0; round < 5; round += 1) {
        const [giver, taker, value] = [`giver-${round}`, `taker-${round}`, `value-${round}`];
        await name_it(giver, value);
        const outcomes = await Promise.allSettled([
          decided(taker, { name: value }, () => [transfer(KIND, value, giver, taker)]),
          name_it(giver, `new-${value}`),
        ]);
        expect(reasons(outcomes)).toEqual([]);
        expect([await ownerOf(value), await ownerOf(`new-${value}`)]).toEqual([taker, giver]);
        await expect(name_it(giver, value)).rejects.toBeInstanceOf(Taken);
      }
    });
  });
}
