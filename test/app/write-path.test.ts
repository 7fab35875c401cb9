import pg from 'pg';
import { v4 } from 'uuid';
import type { Caller, RequestContext, Written } from '../../access/authentication/caller';
import { toFailure } from '../../api/http/answers/errors';
import { newId } from '../../app/write-path/event-ids';
import { handle, type Handling } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import {
  changesByStream,
  release,
  rename as renamed,
  reservation,
  type ReservationCommand,
  reservationStream,
  reserve,
  Taken,
  transfer,
} from '../../domain/common/reservations';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { type EventStore, RevisionConflict } from '../../engines/event-store/port';
import { createLocalWakeups } from '../../engines/wakeups/local';
import { reservationContract } from '../contracts/reservations';
import { testDatabase, type TestDatabase } from '../support/database';
import { decider } from '../support/decider';

type ShelfEvent =
  | { type: 'shelf:opened'; name: string }
  | { type: 'shelf:filled'; by: string }
  | { type: 'shelf:renamed'; name: string };
type ShelfCommand = { type: 'open'; name: string } | { type: 'fill'; by: string } | { type: 'rename'; name: string };
interface Shelf {
  name: string | null;
  filled: string[];
}

const shelf: Decider<Shelf, ShelfCommand, ShelfEvent> = {
  initial: { name: null, filled: [] },
  decide(state, command) {
    if (command.type === 'open') {
      if (state.name !== null) throw new DomainError('SHELF_EXISTS');
      return [{ type: 'shelf:opened', name: command.name }];
    }
    if (state.name === null) throw new DomainError('NO_SHELF');
    if (command.type === 'rename')
      return state.name === command.name ? [] : [{ type: 'shelf:renamed', name: command.name }];
    return state.filled.includes(command.by) ? [] : [{ type: 'shelf:filled', by: command.by }];
  },
  evolve(state, event) {
    if (event.type === 'shelf:filled') return { ...state, filled: [...state.filled, event.by] };
    return { ...state, name: event.name };
  },
};

const reasonsOf = (outcomes: readonly PromiseSettledResult<unknown>[]): unknown[] =>
  outcomes.flatMap((outcome) => (outcome.status === 'rejected' ? [outcome.reason] : []));

describe('reservations', () => {
  const given = decider(reservation);
  const held = { type: 'reservation:made', kind: 'slug', value: 'ada', owner: 'a' } as const;
  const free = { type: 'reservation:released', kind: 'slug', value: 'ada', owner: 'a' } as const;
  /** What commands come to for the one value that all tests here are about. */
  const change = (...commands: ReservationCommand[]) => {
    const found = changesByStream(commands).get(reservationStream('slug', 'ada'));
    return found!;
  };
  test('a free value is taken', () =>
    given([])
      .when(change(reserve('slug', 'ada', 'a')))
      .then(held));
  test('a value given back is free', () =>
    given([held, free])
      .when(change(reserve('slug', 'ada', 'b')))
      .then({ ...held, owner: 'b' }));
  test('its owner may ask again', () =>
    given([held])
      .when(change(reserve('slug', 'ada', 'a')))
      .thenNothing());
  test('nobody else gets it', () =>
    given([held])
      .when(change(reserve('slug', 'ada', 'b')))
      .thenFails('TAKEN'));
  test('only its owner gives it back', () =>
    given([held])
      .when(change(release('slug', 'ada', 'b')))
      .thenNothing());
  test('commands on one value are decided together: given back before taken, and nothing where the owner stays', () => {
    const [take, give] = [reserve('slug', 'ada', 'a'), release('slug', 'ada', 'a')];
    for (const commands of [
      [take, give],
      [give, take],
    ])
      given([held])
        .when(change(...commands))
        .thenNothing();
    given([]).when(change(take, take)).then(held);
    given([held])
      .when(change(reserve('slug', 'ada', 'b'), give))
      .then(free, { ...held, owner: 'b' });
    given([])
      .when(change(take, reserve('slug', 'ada', 'b')))
      .thenFails('TAKEN');
  });
  test('a rename takes one value and gives the other back, and an equal one stays', () => {
    given([])
      .when(change(renamed('slug', 'a', 'bea', 'ada')))
      .then(held);
    given([held])
      .when(change(renamed('slug', 'a', 'ada', 'bea')))
      .then(free);
    given([held])
      .when(change(renamed('slug', 'a', 'ada', 'ada')))
      .thenNothing();
    given([held])
      .when(change(renamed('slug', 'b', 'bea', 'ada')))
      .thenFails('TAKEN');
    // Two change their values with each other.
    given([held])
      .when(change(renamed('slug', 'b', 'bea', 'ada'), renamed('slug', 'a', 'ada', 'bea')))
      .then(free, { ...held, owner: 'b' });
  });
  test('a transfer passes a value on; a third one keeps theirs, and passed on twice it stays', () => {
    given([held])
      .when(change(transfer('slug', 'ada', 'a', 'b')))
      .then(free, { ...held, owner: 'b' });
    given([held])
      .when(change(transfer('slug', 'ada', 'b', 'c')))
      .thenFails('TAKEN');
    given([held])
      .when(change(transfer('slug', 'ada', 'b', 'a')))
      .thenNothing();
  });
  test('odd values have streams of their own, long ones none', () => {
    expect(reservationStream('slug', 'ada')).toBe('reservation-slug-ada');
    expect(reservationStream('role', 'Mod 🦊 ä')).toBe('reservation-role-Mod 🦊 ä');
    const odd = ['a\nb', 'a%000ab', 'a\u0000b', 'a\ud800b', 'a%b', 'ab'].map((value) => reservationStream('x', value));
    expect(new Set(odd).size).toBe(odd.length);
    for (const stream of odd) expect(stream).toMatch(/^reservation-x-[a-f0-9%]+$/);
    expect(() => reservationStream('slug', 'x'.repeat(401))).toThrow('VALUE_TOO_LONG');
  });
});

describe('handle', () => {
  let t: TestDatabase;
  let pool: pg.Pool;
  let events: EventStore;
  let services: Pick<Services, 'events' | 'commit' | 'awaitShown'>;
  const settled: Written[] = [];
  let lose_answer = false;
  beforeAll(async () => {
    t = await testDatabase(2);
    pool = new pg.Pool({ connectionString: t.url, max: 4 });
    events = await createPostgresEventStore({ pool, wakeups: createLocalWakeups() });
    services = {
      events,
      async commit(_request, writes) {
        const result = await events.append(writes, {});
        if (lose_answer) throw new Error('the process died here');
        return result;
      },
      awaitShown: async (_context, written) => void settled.push(written),
    };
  });
  afterAll(async () => {
    await events.close();
    await pool.end();
    await t.drop();
  });

  const caller: Caller = {
    kind: 'jwt',
    user_id: 'u',
    account_id: 'a',
    credential_id: 's',
    permissions: new Set(),
    admin_permissions: new Set(),
    user_permissions: new Set(),
    rate_bucket: 'u',
    rate_limit: null,
    expires_at: null,
  };
  const request = (idempotency_seed: string | null = null) => {
    const context: RequestContext = { correlation_id: v4(), trace: null, ip: '127.0.0.1', now: 0, idempotency_seed };
    return { caller, context };
  };
  const run = (
    stream: string,
    command: ShelfCommand,
    seed: string | null = null,
    more: Partial<Handling<Shelf, ShelfCommand, ShelfEvent>> = {},
  ) => handle(request(seed), services, { decider: shelf, stream, command, ...more });

  test('forty at once on one stream: each finds the state of those before it', async () => {
    await run('shelf-1', { type: 'open', name: 'one' });
    const doubled = Array.from({ length: 40 }, (_, n) => `p-${n % 20}`);
    let lost = 0;
    for (let left = doubled; left.length > 0;) {
      const outcomes = await Promise.allSettled(left.map((by) => run('shelf-1', { type: 'fill', by })));
      left = left.filter((_, n) => outcomes[n]!.status === 'rejected');
      expect(reasonsOf(outcomes).filter((reason) => !(reason instanceof RevisionConflict))).toEqual([]);
      lost += left.length;
    }
    expect(
      (await events.read('shelf-1'))
        .map(({ data }) => data['by'])
        .slice(1)
        .sort(),
    ).toEqual([...new Set(doubled)].sort());
    expect(lost).toBeLessThan(40);
  });

  test('nothing to change appends nothing', async () => {
    const opened = await run('shelf-2', { type: 'open', name: 'two' });
    expect(opened).toMatchObject({ state: { name: 'two' }, replayed: false, result: { revisions: { 'shelf-2': 0 } } });
    expect(await run('shelf-2', { type: 'rename', name: 'two' })).toMatchObject({ events: [], result: null });
    await expect(run('shelf-2', { type: 'open', name: 'again' })).rejects.toMatchObject({ reason: 'SHELF_EXISTS' });
  });

  test('a command stored but never answered is recognised by its seed and answered, not decided again', async () => {
    lose_answer = true;
    await expect(run('shelf-3', { type: 'open', name: 'three' }, 'seed-3')).rejects.toThrow('died');
    lose_answer = false;
    await run('shelf-3', { type: 'fill', by: 'other' });
    const again = await run('shelf-3', { type: 'open', name: 'three' }, 'seed-3');
    expect(again).toMatchObject({
      replayed: true,
      events: [{ type: 'shelf:opened', name: 'three' }],
      state: { filled: ['other'] },
    });
    const stored = await events.read('shelf-3');
    expect(stored).toHaveLength(2);
    // Who asks again looks at the read models next, like the one who asked first.
    expect(settled).toEqual([{ position: stored[0]!.position, types: ['shelf:opened'] }]);
    await run('shelf-3', { type: 'fill', by: 'me' }, 'seed-3', { step: 'fill' });
    expect(await events.read('shelf-3')).toHaveLength(3);
  });

  test('two processes at once under one seed: the one that came second answers what the first one stored', async () => {
    const { commit } = services;
    const run_first = () => run('shelf-4', { type: 'open', name: 'first' }, 'seed-4');
    let first: ReturnType<typeof run> | undefined;
    services.commit = async (...given) => {
      services.commit = commit;
      // Both have read the empty stream, and the other one is quicker.
      await (first = run_first());
      return commit(...given);
    };
    const second = await run('shelf-4', { type: 'open', name: 'second' }, 'seed-4');
    const opened = [{ type: 'shelf:opened', name: 'first' }];
    expect(await first).toMatchObject({ replayed: false, events: opened });
    expect(second).toMatchObject({ replayed: true, events: opened, state: { name: 'first' } });
    expect(second.result).toMatchObject({ revisions: { 'shelf-4': 0 } });
    expect(await events.read('shelf-4')).toHaveLength(1);
  });

  test('a command that loses every race is answered with 503 and a time', async () => {
    const { commit } = services;
    await run('shelf-5', { type: 'open', name: 'five' });
    let tries = 0;
    services.commit = async (...given) => {
      tries += 1;
      await events.append(
        [
          {
            stream: 'shelf-5',
            expected: 'any',
            events: [{ id: v4(), type: 'shelf:filled', data: { by: `${tries}` } }],
          },
        ],
        {},
      );
      return commit(...given);
    };
    const failure = await run('shelf-5', { type: 'fill', by: 'me' }).catch((error: unknown) => error);
    services.commit = commit;
    expect(tries).toBe(8);
    expect(failure).toBeInstanceOf(RevisionConflict);
    expect(toFailure(failure)).toMatchObject({
      code: 'INTERNAL_SERVER_ERROR',
      status: 503,
      retry_after_seconds: 1,
      hidden: true,
    });
  });

  test('ids derive from the seed and the label, and are new without a seed', () => {
    const seeded = { idempotency_seed: 's' };
    expect(newId(seeded, 'a')).toBe(newId(seeded, 'a'));
    expect(newId(seeded, 'a')).not.toBe(newId(seeded, 'b'));
    expect(newId({ idempotency_seed: null }, 'a')).not.toBe(newId({ idempotency_seed: null }, 'a'));
  });

  test('renaming to an equal value keeps it, and two on one value are one write', async () => {
    const slug = (name: string) => name.toLowerCase();
    const rename = (id: string, before: string, name: string) =>
      run(id, { type: 'rename', name }, null, {
        reservations: () => [renamed('case', id, slug(before), slug(name))],
      });
    const open = (id: string, name: string) =>
      run(id, { type: 'open', name }, null, {
        reservations: () => [reserve('case', slug(name), id), reserve('case', slug(name), id)],
      });
    await open('shelf-c1', 'Ada');
    await rename('shelf-c1', 'Ada', 'ADA');
    await expect(open('shelf-c2', 'ada')).rejects.toBeInstanceOf(Taken);
    expect(await events.read(reservationStream('case', 'ada'))).toHaveLength(1);
    await rename('shelf-c1', 'ADA', 'Bea');
    await open('shelf-c2', 'ada');
    await expect(open('shelf-c3', 'BEA')).rejects.toBeInstanceOf(Taken);
  });
});

reservationContract('postgres', async () => {
  const t = await testDatabase(2);
  const pool = new pg.Pool({ connectionString: t.url, max: 4 });
  const events = await createPostgresEventStore({ pool, wakeups: createLocalWakeups() });
  return {
    events,
    async close() {
      await events.close();
      await pool.end();
      await t.drop();
    },
  };
});
