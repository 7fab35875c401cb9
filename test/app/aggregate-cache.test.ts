import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import { newId } from '../../app/write-path/event-ids';
import { handle } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import { sizeOf } from '../../app/write-path/aggregate-size';
import { load, AggregateCache, aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { account, accountStream, type AccountEvent } from '../../domain/accounts/accounts';
import { profile, profileStream } from '../../domain/identity/profiles';
import { delegated } from '../../engines/event-store/decorators/delegated';
import type { EventStore } from '../../engines/event-store/port';
import { createSealing, sealedEventStore } from '../../engines/event-store/decorators/sealing';
import { fold, type Decider } from '../../kernel/decider';
import { catalogue, event, events, subject } from '../../kernel/event';
import { type TestDatabase, testDatabase } from '../support/database';
import { engines, type Engines } from '../support/projections';

interface Counter {
  total: number;
  notes: readonly string[];
}
type Counted = { type: 'counter:counted'; by: number } | { type: 'counter:noted'; note: string };
type Count = { type: 'count'; by: number };

const counter: Decider<Counter, Count, Counted> = {
  initial: { total: 0, notes: [] },
  decide: (_state, { by }) => [{ type: 'counter:counted', by }],
  evolve: (state, one) =>
    one.type === 'counter:counted'
      ? { ...state, total: state.total + one.by }
      : { ...state, notes: [...state.notes, one.note] },
};

let t: TestDatabase;
let on: Engines;
/** How many events were read, and by how many reads. */
const read = { events: 0, times: 0 };
let store: EventStore;

beforeAll(async () => {
  t = await testDatabase();
  on = await engines(t.db);
  store = counting(on.events);
});
afterAll(async () => {
  await on.close();
  await t.drop();
});
beforeEach(() => void Object.assign(read, { events: 0, times: 0 }));

function counting(below: EventStore): EventStore {
  return {
    ...delegated(below),
    async read(...given) {
      const found = await below.read(...given);
      read.events += found.length;
      read.times += 1;
      return found;
    },
  };
}

const counted = (by: number) => ({ id: uuid(), type: 'counter:counted', data: { by } });
const append = (stream: string, made: readonly { id: string; type: string; data: object }[]) =>
  on.events.append([{ stream, expected: 'any', events: made as never }], {});

test('a state that was loaded is topped up with what came after, whoever appended', async () => {
  const [states, stream] = [new AggregateCache(store), `counter-${uuid()}`];
  expect(await states.load(counter, stream)).toMatchObject({ state: counter.initial, revision: -1 });
  await append(
    stream,
    Array.from({ length: 2_500 }, () => counted(1)),
  );
  expect(await states.load(counter, stream)).toMatchObject({ state: { total: 2_500 }, revision: 2_499 });
  expect(read.events).toBe(2_500);
  expect(await states.load(counter, stream)).toMatchObject({ state: { total: 2_500 }, revision: 2_499 });
  await append(stream, [counted(3), counted(4)]);
  expect(await states.load(counter, stream)).toMatchObject({ state: { total: 2_507 }, revision: 2_501 });
  expect(read.events).toBe(2_500 + 1 + 3);
});

test('pages of events end anywhere', async () => {
  for (const length of [998, 999, 1_000, 1_001]) {
    const [states, stream] = [new AggregateCache(store), `counter-${uuid()}`];
    const many = () =>
      append(
        stream,
        Array.from({ length }, () => counted(1)),
      );
    for (const times of [1, 2]) {
      await many();
      expect((await states.load(counter, stream)).state.total).toBe(times * length);
    }
  }
});

test('two deciders on one stream have states of their own', async () => {
  const [states, stream] = [new AggregateCache(store), `counter-${uuid()}`];
  const twice: typeof counter = { ...counter, evolve: (state) => ({ ...state, total: state.total + 2 }) };
  await append(stream, [counted(1)]);
  for (let again = 0; again < 2; again += 1) {
    expect((await states.load(counter, stream)).state.total).toBe(1);
    expect((await states.load(twice, stream)).state.total).toBe(2);
  }
});

test('a stream that is another one by now is read anew: restored to less, or to something else', async () => {
  const [states, stream] = [new AggregateCache(store), `counter-${uuid()}`];
  const forget = () => t.db.query('delete from domain_events where stream = $1', [stream]);
  await append(stream, [counted(1), counted(1), counted(1)]);
  expect((await states.load(counter, stream)).revision).toBe(2);
  await forget();
  expect(await states.load(counter, stream)).toMatchObject({ state: counter.initial, revision: -1 });
  await append(stream, [counted(5)]);
  expect(await states.load(counter, stream)).toMatchObject({ state: { total: 5 }, revision: 0 });
  await forget();
  await append(stream, [counted(7), counted(7)]);
  expect(await states.load(counter, stream)).toMatchObject({ state: { total: 14 }, revision: 1 });
});

test('what an erased person left in a state is gone with the next load', async () => {
  const declared = catalogue([
    events({
      'counter:noted': event(
        { user_id: z.uuid(), note: z.string().nullable() },
        { personal: { note: subject('user', 'user_id') } },
      ),
    }),
  ]);
  const sealed = sealedEventStore(on.events, createSealing(declared, on.subject_keys));
  const [states, stream, user_id] = [new AggregateCache(sealed), `counter-${uuid()}`, uuid()];
  const noted = { id: uuid(), type: 'counter:noted', data: { user_id, note: 'hers' } };
  await sealed.append([{ stream, expected: 'none', events: [counted(1) as never] }], {});
  expect((await states.load(counter, stream)).state.notes).toEqual([]);
  await sealed.append([{ stream, expected: 0, events: [noted] }], {});
  for (let again = 0; again < 2; again += 1) expect((await states.load(counter, stream)).state.notes).toEqual(['hers']);
  expect(states.bytes).toBe(0);
  await on.subject_keys.erase(`user:${user_id}`);
  expect((await states.load(counter, stream)).state.notes).toEqual([null]);
});

test('what is remembered is bounded in bytes, and what is larger than the bound is not remembered', async () => {
  const states = new AggregateCache(store, 20_000);
  const notes = (stream: string, count: number) =>
    append(
      stream,
      Array.from({ length: count }, () => ({ id: uuid(), type: 'counter:noted', data: { note: 'x'.repeat(900) } })),
    );
  for (let n = 0; n < 30; n += 1) {
    const stream = `counter-${uuid()}`;
    await notes(stream, 2);
    await states.load(counter, stream);
    expect(states.bytes).toBeLessThanOrEqual(20_000);
  }
  expect(states.bytes).toBeGreaterThan(10_000);
  const large = `counter-${uuid()}`;
  await notes(large, 40);
  for (let again = 0; again < 2; again += 1) expect((await states.load(counter, large)).state.notes).toHaveLength(40);
  expect(states.bytes).toBeLessThanOrEqual(20_000);
});

test('a small state of many events stays small', async () => {
  const [states, stream] = [new AggregateCache(store), `counter-${uuid()}`];
  await append(
    stream,
    Array.from({ length: 3_000 }, () => counted(1)),
  );
  await states.load(counter, stream);
  expect(states.bytes).toBeLessThan(3_000);
});

describe('a profile', () => {
  const user_id = uuid();
  const stream = profileStream(user_id);
  const services: Pick<Services, 'events' | 'commit' | 'awaitShown'> = {
    get events() {
      return store;
    },
    commit: (_request, writes) => store.append(writes, {}),
    awaitShown: async () => undefined,
  };
  const change = (display_name: string, idempotency_seed: string | null = null) =>
    handle(
      {
        caller: {} as Caller,
        context: { correlation_id: 'c', trace: null, ip: '127.0.0.1', now: 0, idempotency_seed },
      },
      services,
      {
        decider: profile,
        stream,
        command: {
          type: 'profile:change',
          user_id,
          before: { display_name: null, email: null },
          after: { display_name, email: null },
          now: '2026-01-01T00:00:00.000Z',
        },
      },
    );

  test('of any number of changes is changed without a read of them', async () => {
    for (let n = 0; n < 40; n += 1) await change(`name ${n}`);
    expect(await on.events.read(stream)).toHaveLength(40);
    expect(read.events).toBe(0);
  });

  test('is changed once under one Idempotency-Key, also when another change came between', async () => {
    const before = (await on.events.read(stream)).length;
    await change('seeded', 'profile seed');
    await change('another');
    const again = await change('seeded', 'profile seed');
    expect(again).toMatchObject({ events: [{ display_name: 'seeded' }] });
    const stored = await on.events.read(stream);
    expect(stored.slice(before).map(({ data }) => data['display_name'])).toEqual(['seeded', 'another']);
    // The repetition reads what it made, never the stream.
    expect(read.events).toBeLessThan(5);
  });

  test('is changed by callers at the same time, each with an event of its own', async () => {
    const before = (await on.events.read(stream)).length;
    await Promise.all(Array.from({ length: 8 }, (_, n) => change(`at once ${n}`)));
    expect(await on.events.read(stream)).toHaveLength(before + 8);
  });
});

describe('a stream of more seeded events than are remembered', () => {
  const [stream, begun] = [`counter-${uuid()}`, Date.now()];
  const idOf = (seed: string) => newId({ idempotency_seed: seed }, `${stream}\n0`);
  const services: Pick<Services, 'events' | 'commit' | 'awaitShown'> = {
    get events() {
      return store;
    },
    commit: (_request, writes) => store.append(writes, {}),
    awaitShown: async () => undefined,
  };
  const count = (seed: string, since: number | undefined) => {
    const context: RequestContext = {
      ...{ correlation_id: 'c', trace: null, ip: '127.0.0.1', now: 0, idempotency_seed: seed },
      ...(since !== undefined && { seed_since: since }),
    };
    const command: Count = { type: 'count', by: 1 };
    return handle({ caller: {} as Caller, context }, services, { decider: counter, stream, command });
  };
  beforeAll(async () => {
    for (let at = 0; at < 12_000; at += 1_000)
      await append(
        stream,
        Array.from({ length: 1_000 }, (_, n) => ({ ...counted(1), id: idOf(`earlier ${at + n}`) })),
      );
    await count('first', Infinity);
  });

  test('takes further commands by reading what came since the last one, in bounded memory', async () => {
    for (let n = 0; n < 20; n += 1) expect((await count(`new ${n}`, Infinity)).replayed).toBe(false);
    // What each keeps is read again, and the last event before it.
    expect(read.events).toBeLessThanOrEqual(20 * 4);
    expect(aggregateCacheOf(store).bytes).toBeLessThan(2 * 1024 * 1024);
  });

  test('knows a repetition among the newest without a read of the others', async () => {
    const { state } = await count('a repeated one', Infinity);
    expect(await count('a repeated one', begun)).toMatchObject({ replayed: true, state });
    expect(read.events).toBeLessThan(200);
  });

  test('reads back for an old repetition, as far as its seed is old', async () => {
    expect((await count('earlier 17', undefined)).replayed).toBe(true);
    const all = read.events;
    expect(all).toBeGreaterThan(6_000);
    Object.assign(read, { events: 0, times: 0 });
    expect((await count('earlier 6100', begun)).replayed).toBe(true);
    expect(read.events).toBeLessThan(all);
    Object.assign(read, { events: 0, times: 0 });
    // A seed younger than all that was forgotten has no event there.
    expect((await count('of later', Date.now() + 120_000)).replayed).toBe(false);
    expect(read.events).toBeLessThan(10);
  });
});

describe('an account of ten thousand members', () => {
  const account_id = uuid();
  const stream = accountStream(account_id);
  const roles = account.decide(account.initial, {
    type: 'account:create',
    account_id,
    name: 'Large',
    owner_id: uuid(),
    membership_id: uuid(),
    role_ids: [uuid(), uuid(), uuid(), uuid()],
    now: '2026-01-01T00:00:00.000Z',
  });
  const role_id = (roles[0] as Extract<AccountEvent, { type: 'account:created' }>).roles[3]!.role_id;
  const joined = (): AccountEvent => ({
    type: 'account:member_added',
    account_id,
    membership_id: uuid(),
    user_id: uuid(),
    role_id,
    added_at: '2026-01-01T00:00:00.000Z',
  });
  const history = (members: number): AccountEvent[] => [...roles, ...Array.from({ length: members }, joined)];

  test('takes a command by reading what came since the last one, and a lost race by reading what it lost to', async () => {
    const services: Pick<Services, 'events' | 'commit' | 'awaitShown'> = {
      events: store,
      commit: (_request, writes) => store.append(writes, {}),
      awaitShown: async () => undefined,
    };
    const context = (idempotency_seed: string | null): RequestContext => ({
      correlation_id: 'c',
      trace: null,
      ip: '127.0.0.1',
      now: 0,
      idempotency_seed,
    });
    const add = (user_id: string, seed: string | null = null) =>
      handle({ caller: {} as Caller, context: context(seed) }, services, {
        decider: account,
        stream,
        command: {
          type: 'account:add_member',
          membership_id: uuid(),
          user_id,
          role_id,
          now: '2026-01-01T00:00:00.000Z',
        },
      });
    const stored = history(10_000).map(({ type, ...data }) => ({ id: uuid(), type, data }));
    for (let at = 0; at < stored.length; at += 1_000) await append(stream, stored.slice(at, at + 1_000));

    await add(uuid());
    Object.assign(read, { events: 0, times: 0 });
    const seeded = uuid();
    await add(seeded, 'seed');
    await add(uuid());
    // What was appended last, again to see that it is the same stream, and what a seeded command kept.
    expect(read.events).toBeLessThanOrEqual(6);

    Object.assign(read, { events: 0, times: 0 });
    const before = (await load(store, account, stream))!.state.members.size;
    await Promise.all(Array.from({ length: 8 }, () => add(uuid())));
    expect((await load(store, account, stream))!.state.members.size).toBe(before + 8);
    expect(read.events).toBeLessThan(500);

    Object.assign(read, { events: 0, times: 0 });
    expect(await add(seeded, 'seed')).toMatchObject({ replayed: true, events: [{ user_id: seeded }] });
    expect(read.events).toBeLessThan(80);
    expect(aggregateCacheOf(store).bytes).toBeLessThan(8 * 1024 * 1024);
  });

  test('is measured within a factor of what it takes', () => {
    const measured = sizeOf(fold(account, history(10_000)));
    expect(measured).toBeGreaterThan(10_000 * 200);
    expect(measured).toBeLessThan(10_000 * 800);
  });
});
