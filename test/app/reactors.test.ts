import { v7 } from 'uuid';
import { z } from 'zod';
import { job, type JobTools } from '../../app/job';
import { REACTORS } from '../../bin/areas';
import { reactor, type AreaReactor } from '../../app/reactor';
import { account, ACCOUNT_EVENTS, accountStream } from '../../domain/accounts/accounts';
import { apiKey, API_KEY_EVENTS, type ApiKeyEvent, apiKeyStream } from '../../domain/credentials/api-keys';
import { USER_EVENTS, userStream } from '../../domain/identity/users';
import { fold, type Decider } from '../../kernel/decider';
import type { JobDeclaration } from '../../kernel/job';
import { CannotReact } from '../../kernel/reactor';
import { fromStored } from '../../app/write-path/aggregate-cache';
import { createJobs } from '../../reactors/runtime/jobs';
import type { StoredEvent } from '../../engines/event-store/port';
import { attributedEventStore } from '../../engines/event-store/decorators/attributed';
import { versionedEventStore } from '../../engines/event-store/decorators/versioned';
import { createUpcasters } from '../../kernel/upcasters';
import { createPostgresJobs } from '../../engines/jobs/postgres';
import { createPayloadSealing } from '../../engines/jobs/sealing';
import { CheckpointLost, readCheckpoints } from '../../projections/runtime/checkpoint/checkpoints';
import { FailedTries } from '../../reactors/runtime/failed-tries';
import { readerOf } from '../../reactors/runtime/runner';
import { listDeadLetters, parkedHeads, type DeadLetter } from '../../projections/runtime/dead-letter/dead-letters';
import { dropReaction, retryReaction } from '../../reactors/runtime/retry-letters';
import { startReactors, type Reactors } from '../../reactors/runtime/runtime';
import { createHttpClients } from '../../vendors/http/client';
import { type TestDatabase, testDatabase } from '../support/database';
import { keptLog, silentLog } from '../support/log';
import { engines, type Engines, noMetrics, until } from '../support/projections';

const now = '2026-01-02T03:04:05.000Z';

describe('tries of a reaction', () => {
  test.each([
    ['is unavailable', Object.assign(new Error('gone'), { code: 'ECONNRESET' })],
    ['was moved by another worker', new CheckpointLost('reactor:noting', [])],
  ])('an engine that %s never parks an event', (_what, error) => {
    const failed = new FailedTries(1, 0);
    expect(failed.exhausted('event', error)).toBe(false);
    expect(failed.exhausted('event', new Error('a mistake'))).toBe(true);
  });
});

test('an event is parked by its failed tries and the time since the first of them, whichever comes last', () => {
  let now_ms = 0;
  const failed = new FailedTries(5, 300_000, () => now_ms);
  const fails = () => failed.exhausted('event', new Error('a mistake'));
  for (let n = 0; n < 6; n += 1) expect(fails()).toBe(false);
  now_ms = 299_999;
  expect(fails()).toBe(false);
  now_ms = 300_000;
  expect(fails()).toBe(true);
  // The time of another event begins at its own first failure.
  for (let n = 0; n < 5; n += 1) expect(failed.exhausted('other', new Error('a mistake'))).toBe(false);
  now_ms = 600_000;
  expect(failed.exhausted('other', new Error('a mistake'))).toBe(true);
});

describe('reactors', () => {
  let t: TestDatabase;
  let on: Engines;
  const running: Reactors[] = [];
  beforeEach(async () => {
    t = await testDatabase(20);
    on = await engines(t.db);
    await t.db.query('create table noted (n bigint generated always as identity, what text not null)');
  });
  afterEach(async () => {
    for (const one of running.splice(0)) await one.stop();
    await on.close();
    await t.drop();
  });

  const remind = job({
    name: 'remind',
    payload: { what: z.string() },
    after_unknown: 'repeat',
    async run() {
      throw new Error('not run here');
    },
  });
  const queue = () =>
    createPostgresJobs({
      db: t.db,
      wakeups: on.wakeups,
      process: { lock: 1, held: true, ready: async () => {} },
      log: silentLog,
    });

  const jobsOf = (db: TestDatabase['db'], log = silentLog) =>
    createJobs<JobTools>({
      queue: queue(),
      db,
      declared: [remind],
      sealing: createPayloadSealing([remind as JobDeclaration], on.subject_keys),
      services: {
        ...{ db, log, http: createHttpClients({ metrics: noMetrics }), erase: async () => undefined },
        blobs: { get: async () => undefined, delete: async () => undefined },
        eraseRows: async () => undefined,
        // No job here speaks with a vendor.
        ...{ connections: undefined as never, act: undefined as never },
        ...{
          records: undefined as never,
          live: undefined as never,
          chats: undefined as never,
          texts: undefined as never,
          webhooks: undefined as never,
          hashes: undefined as never,
        },
      },
      log,
      metrics: noMetrics,
    });
  async function drive(
    reactors: readonly AreaReactor[],
    { db = t.db as TestDatabase['db'], log = silentLog, node = on, reaction_ms = 10_000, tries = Infinity } = {},
  ) {
    const jobs = jobsOf(db, log);
    const started = await startReactors({
      db,
      events: node.events,
      shares: node.shares,
      log,
      metrics: noMetrics,
      reactors,
      jobs,
      backoff_ms: 200,
      reaction_ms,
      tries,
      park_after_ms: 0,
      observe_ms: 50,
    });
    running.push(started);
    return started;
  }
  const noted = async () => (await t.db.query('select what from noted order by n')).map(({ what }) => what as string);

  const person = { account_id: v7(), user_id: v7() };
  async function append(stream: string, type: string, data: StoredEvent['data'], account_id?: string) {
    const event = { id: v7(), type, data };
    const metadata = { correlation_id: 'asked', ...(account_id !== undefined && { account_id }) };
    await on.events.append([{ stream, expected: 'any', events: [event] }], metadata);
    return event;
  }
  async function createKey(): Promise<string> {
    const key_id = v7();
    await append(apiKeyStream(key_id), 'api_key:created', {
      key_id,
      ...person,
      key_hash: 'x',
      key_prefix: 'lm_',
      label: 'Key',
      permissions: [],
      expires_at: null,
      created_at: now,
    });
    return key_id;
  }
  const left = () =>
    append(accountStream(person.account_id), 'account:member_removed', {
      ...person,
      membership_id: v7(),
      removed_at: now,
    });
  const joined = () =>
    append(accountStream(person.account_id), 'account:member_added', {
      ...person,
      membership_id: v7(),
      role_id: v7(),
      added_at: now,
    });
  const remembered = async () =>
    (await t.db.query('select key_id from member_keys')).map(({ key_id }) => key_id as string);
  const key = async (key_id: string) =>
    fold(
      apiKey,
      (await on.events.read(apiKeyStream(key_id))).map((event) => fromStored<ApiKeyEvent>(event)),
    );

  /** Notes each label that it is told of; `fail` and `park` do what they say. */
  const noting = (options: Partial<Pick<AreaReactor, 'name' | 'from'>> = {}, fails = () => false) =>
    reactor({
      name: options.name ?? 'noting',
      from: options.from ?? 'beginning',
      events: [API_KEY_EVENTS],
      on: {
        'api_key:renamed': ({ label }, { keep }) => {
          if (label === 'fail' && fails()) throw new Error('not now');
          if (label === 'park') throw new CannotReact('never');
          keep('insert into noted (what) values ($1)', [label]);
        },
      },
    });
  const rename = (label: string, key_id = v7(), account_id?: string) =>
    append(apiKeyStream(key_id), 'api_key:renamed', { key_id, account_id: v7(), label, renamed_at: now }, account_id);

  test('the keys of a removed member are revoked by events that say who did it and why', async () => {
    const [before, removal] = [await createKey(), await left()];
    await drive(REACTORS);
    await until(async () => (await key(before)).status === 'revoked');
    const revoked = (await on.events.read(apiKeyStream(before))).at(-1)!;
    expect(revoked).toMatchObject({
      type: 'api_key:revoked',
      metadata: { actor_kind: 'service', actor_id: 'api-keys', causation_id: removal.id, correlation_id: 'asked' },
    });
    const after = await createKey();
    await left();
    await until(async () => (await key(after)).status === 'revoked');
    // What it did itself it has read too.
    await until(async () => (await remembered()).length === 0);
  });

  test('a member removed and back again before it ran: the old keys die, the new ones live', async () => {
    const old = [await createKey(), await createKey()];
    await left();
    const beside = await createKey();
    await joined();
    const fresh = await createKey();
    await drive(REACTORS);
    await until(async () => (await key(beside)).status === 'revoked');
    for (const key_id of old) expect((await key(key_id)).status).toBe('revoked');
    // All of it was read: what it remembers is the key that lives.
    await until(async () => (await remembered()).join() === fresh);
    expect((await key(fresh)).status).toBe('active');
  });

  test.each([
    ['before its checkpoint, after the append', 1],
    ['after its checkpoint', 2],
  ])('a crash %s: each key is revoked once', async (_where, nth) => {
    const keys = [await createKey(), await createKey()];
    await left();
    let moves = 0;
    // The transaction that holds the checkpoint of the removal fails, or its answer gets lost: as a kill leaves it.
    const dying: TestDatabase['db'] = Object.assign(Object.create(t.db) as TestDatabase['db'], {
      async transaction(...given: Parameters<TestDatabase['db']['transaction']>) {
        const revoked = (await Promise.all(keys.map(key))).every(({ status }) => status === 'revoked');
        if (revoked && (moves += 1) === 1 && nth === 1)
          throw Object.assign(new Error('killed'), { code: 'ECONNRESET' });
        const result = await t.db.transaction(...given);
        if (revoked && moves === 1 && nth === 2) throw Object.assign(new Error('killed'), { code: 'ECONNRESET' });
        return result;
      },
    });
    const log = keptLog();
    await drive(REACTORS, { db: dying, log });
    await until(() => moves >= 2);
    await until(async () => (await remembered()).length === 0);
    for (const key_id of keys) {
      const types = (await on.events.read(apiKeyStream(key_id))).map(({ type }) => type);
      expect(types).toEqual(['api_key:created', 'api_key:revoked']);
    }
  });

  test.each([
    ['before the commit', 1],
    ['after the commit', 2],
  ])('a job that a reaction enqueues is there once, though its process was killed %s', async (_where, nth) => {
    const reminding = reactor({
      name: 'reminding',
      from: 'beginning',
      events: [API_KEY_EVENTS],
      on: {
        'api_key:renamed': ({ key_id, label }, { enqueue }) =>
          enqueue(remind, { key: `${key_id}/${label}`, payload: { what: label } }),
      },
    });
    await rename('first');
    let moves = 0;
    const dying: TestDatabase['db'] = Object.assign(Object.create(t.db) as TestDatabase['db'], {
      async transaction(...given: Parameters<TestDatabase['db']['transaction']>) {
        const due = ++moves === 1;
        if (due && nth === 1) {
          const killed = () => Promise.reject(Object.assign(new Error('killed'), { code: 'ECONNRESET' }));
          return t.db.transaction(async (tx) => given[0](tx).then(killed));
        }
        const result = await t.db.transaction(...given);
        if (due && nth === 2) throw Object.assign(new Error('killed'), { code: 'ECONNRESET' });
        return result;
      },
    });
    await drive([reminding], { db: dying });
    await until(async () => (await queue().list({ limit: 9 })).length > 0);
    await rename('second');
    await until(async () => (await queue().list({ limit: 9 })).length > 1);
    expect((await queue().list({ limit: 9 })).map(({ key }) => key.split('/')[2])).toEqual(['first', 'second']);
  });

  test('a command that changes something each time is stored once, through a crash before the checkpoint', async () => {
    const key_id = v7();
    const always: Decider<object, object, ApiKeyEvent> = {
      initial: {},
      decide: () => [
        { type: 'api_key:renamed', key_id, account_id: person.account_id, label: 'again', renamed_at: now },
      ],
      evolve: (state) => state,
    };
    let reactions = 0;
    const renaming = reactor({
      name: 'renaming',
      from: 'beginning',
      events: [ACCOUNT_EVENTS],
      on: {
        'account:member_removed': async (_event, { act }) => {
          reactions += 1;
          await act(always, apiKeyStream(key_id), {});
          if (reactions === 1) throw new Error('killed');
        },
      },
    });
    await left();
    const reactors = await drive([renaming]);
    await until(() => reactions === 2 && reactors.status()[0]!.error === null);
    expect(await on.events.read(apiKeyStream(key_id))).toHaveLength(1);
  });

  test('from now begins where the log ended at its installation, which a restart does not move', async () => {
    await rename('before');
    const first = await drive([noting({ from: 'now' })]);
    await first.stop();
    await rename('while it was away');
    await drive([noting({ from: 'now' })]);
    await rename('after');
    await until(async () => (await noted()).length === 2);
    expect(await noted()).toEqual(['while it was away', 'after']);
  });

  test('a reaction that fails is tried again and holds everything up, visibly; none skipped or doubled', async () => {
    let failing = true;
    const log = keptLog();
    const reactors = await drive([noting({}, () => failing)], { log });
    for (const label of ['one', 'fail', 'two']) await rename(label);
    await until(() => reactors.status()[0]!.state === 'failing');
    expect(reactors.status()[0]).toMatchObject({ error: 'Error: not now' });
    await until(async () => (await noted()).length === 1);
    expect(await noted()).toEqual(['one']);
    failing = false;
    await until(async () => (await noted()).length === 3);
    expect(await noted()).toEqual(['one', 'fail', 'two']);
    expect(reactors.status()[0]).toMatchObject({ state: 'running', error: null });
    expect(log.lines.filter(({ level }) => level === 'error').length).toBeGreaterThan(0);
  });

  test('a declared data error is parked with what follows in its stream; all else goes on', async () => {
    await drive([noting()]);
    const key_id = v7();
    await rename('park', key_id);
    await rename('behind', key_id);
    await rename('beside');
    await until(async () => (await noted()).length === 1);
    await rename('later', key_id);
    await rename('last');
    await until(async () => (await noted()).length === 2);
    expect(await noted()).toEqual(['beside', 'last']);
    const letters = await listDeadLetters(t.db);
    expect(letters.map(({ projection, reason, stream }) => [projection, reason, stream])).toEqual(
      ['poison', 'blocked', 'blocked'].map((reason) => ['reactor:noting', reason, apiKeyStream(key_id)]),
    );

    // A retry reacts in order up to the first failure; a drop lets the stream go on.
    const settling = {
      db: t.db,
      events: on.events,
      readStored: on.readStored,
      reactors: [noting()],
      jobs: jobsOf(t.db),
    };
    const [head] = letters as [DeadLetter];
    expect(await retryReaction(settling, head.id)).toEqual({
      retried: 0,
      dropped: 0,
      waiting: 3,
      error: 'CannotReact: never',
    });
    expect(await dropReaction(settling, head.id)).toEqual({ retried: 2, dropped: 1, waiting: 0, error: null });
    await expect(retryReaction(settling, head.id)).rejects.toThrow(/is dropped already/);
    await rename('freed', key_id);
    await until(async () => (await noted()).length === 5);
    expect(await noted()).toEqual(['beside', 'last', 'behind', 'later', 'freed']);
  });

  test('a reaction that keeps failing is parked with its account; other accounts continue', async () => {
    let failing = true;
    const [ours, theirs] = [v7(), v7()];
    const reactors = [noting({}, () => failing)];
    const driven = await drive(reactors, { tries: 3 });
    await rename('fail', v7(), ours);
    await rename('other key of the account', v7(), ours);
    await rename('other account', v7(), theirs);
    await until(async () => (await noted()).length === 1);
    expect(await noted()).toEqual(['other account']);
    const letters = await listDeadLetters(t.db);
    expect(letters.map(({ reason, account_id, error }) => [reason, account_id, error])).toEqual([
      ['poison', ours, 'Error: not now'],
      ['blocked', ours, `an earlier event of ${ours} is parked`],
    ]);
    await until(() => driven.status()[0]!.state === 'running');
    const heads: number[] = [];
    for await (const id of parkedHeads(t.db, null)) heads.push(id);
    expect(heads).toEqual([letters[0]!.id]);

    failing = false;
    const settling = { db: t.db, events: on.events, readStored: on.readStored, reactors, jobs: jobsOf(t.db) };
    expect(await retryReaction(settling, heads[0]!)).toEqual({ retried: 2, dropped: 0, waiting: 0, error: null });
    await rename('freed', v7(), ours);
    await until(async () => (await noted()).length === 4);
    expect(await noted()).toEqual(['other account', 'fail', 'other key of the account', 'freed']);
  });

  test('events without an account wait in lanes of their streams: one user holds up no other', async () => {
    const [bad, good] = [v7(), v7()];
    let failing = true;
    const deleting = reactor({
      name: 'deleting',
      from: 'beginning',
      events: [USER_EVENTS],
      on: {
        'user:deleted': ({ user_id, deleted_at }, { keep }) => {
          if (failing && user_id === bad) throw new CannotReact('never');
          keep('insert into noted (what) values ($1)', [`${user_id} ${deleted_at}`]);
        },
      },
    });
    const events = attributedEventStore(on.events);
    for (const [user_id, deleted_at] of [bad, good, bad].map((id, n) => [id, now.replace('05', `0${n}`)] as const)) {
      const deleted = { id: v7(), type: 'user:deleted', data: { user_id, deleted_at } };
      await events.append([{ stream: userStream(user_id), expected: 'any', events: [deleted] }], {});
    }
    await drive([deleting]);
    await until(async () => (await listDeadLetters(t.db)).length === 2);
    expect(await noted()).toEqual([`${good} ${now.replace('05', '01')}`]);
    const letters = await listDeadLetters(t.db);
    expect(letters.map(({ reason, stream }) => [reason, stream])).toEqual([
      ['poison', userStream(bad)],
      ['blocked', userStream(bad)],
    ]);
    const heads: number[] = [];
    for await (const id of parkedHeads(t.db, null)) heads.push(id);
    expect(heads).toEqual([letters[0]!.id]);

    failing = false;
    const settling = {
      db: t.db,
      events: on.events,
      readStored: on.readStored,
      reactors: [deleting],
      jobs: jobsOf(t.db),
    };
    expect(await retryReaction(settling, heads[0]!)).toMatchObject({ retried: 2, waiting: 0, error: null });
  });

  test('a kept statement that fails parks its own event, not a neighbour', async () => {
    await t.db.query(`alter table noted add check (what <> 'refused')`);
    for (const label of ['one', 'refused', 'two']) await rename(label);
    await drive([noting()], { tries: 3 });
    await until(async () => (await noted()).length === 2);
    expect(await noted()).toEqual(['one', 'two']);
    const [letter] = await listDeadLetters(t.db);
    expect(letter).toMatchObject({ reason: 'poison', error: expect.stringContaining('23514') });
  });

  test('no more than ten lanes in a row are parked, because then no event is to blame', async () => {
    for (let n = 0; n < 12; n += 1) await rename('fail');
    const driven = await drive([noting({}, () => true)], { tries: 1 });
    await until(() => driven.status()[0]!.state === 'failing' && driven.status()[0]!.error === 'Error: not now');
    await until(async () => (await listDeadLetters(t.db)).length === 10);
    await until(() => driven.status()[0]!.state === 'failing');
    expect(await listDeadLetters(t.db)).toHaveLength(10);
  });

  test('reactions that read other tables than were written share one commit', async () => {
    const reading = reactor({
      name: 'reading',
      from: 'beginning',
      events: [API_KEY_EVENTS],
      on: {
        'api_key:renamed': async ({ label }, { db, keep }) => {
          await db.query('select 1 from member_keys');
          keep('insert into noted (what) values ($1)', [label]);
        },
      },
    });
    for (let n = 0; n < 50; n += 1) await rename(`${n}`);
    let commits = 0;
    const counting: TestDatabase['db'] = Object.assign(Object.create(t.db) as TestDatabase['db'], {
      transaction(...given: Parameters<TestDatabase['db']['transaction']>) {
        commits += 1;
        return t.db.transaction(...given);
      },
    });
    await drive([reading], { db: counting });
    await until(async () => (await noted()).length === 50);
    // One a page of the log; the pages are of no fixed size.
    expect(commits).toBeLessThan(10);
  });

  test('what a settling that was cut off left behind is found when all is tried again', async () => {
    const [key_id, poisoned] = [v7(), v7()];
    const running_now = await drive([noting()]);
    for (const label of ['park', 'fail', 'last']) await rename(label, key_id);
    for (const label of ['park', 'behind']) await rename(label, poisoned);
    await until(async () => (await listDeadLetters(t.db)).length === 5);
    await running_now.stop();
    let failing = true;
    const reactors = [noting({}, () => failing)];
    const settling = { db: t.db, events: on.events, readStored: on.readStored, reactors, jobs: jobsOf(t.db) };
    const heads = async () => {
      const found: number[] = [];
      for await (const id of parkedHeads(t.db, null)) found.push(id);
      return found;
    };
    const letters = await listDeadLetters(t.db);
    const idOf = (stream: string, nth: number) =>
      letters.filter((letter) => letter.stream === apiKeyStream(stream))[nth]!.id;
    expect(await heads()).toEqual([idOf(key_id, 0), idOf(poisoned, 0)].sort((a, b) => a - b));
    await expect(dropReaction(settling, idOf(key_id, 0))).rejects.toThrow('not now');
    failing = false;
    expect(await heads()).toEqual([idOf(key_id, 1), idOf(poisoned, 0)].sort((a, b) => a - b));
    expect(await retryReaction(settling, idOf(key_id, 1))).toMatchObject({ retried: 2, waiting: 0 });
    expect(await heads()).toEqual([idOf(poisoned, 0)]);
  });

  test('what waits behind a parked event is read once, however much it is', async () => {
    const running_now = await drive([noting()]);
    const key_id = v7();
    await rename('park', key_id);
    for (let n = 0; n < 30; n += 1) await rename(`behind ${n}`, key_id);
    await until(async () => (await listDeadLetters(t.db)).length === 31);
    await running_now.stop();
    let read = 0;
    const counting = {
      query: async (text: string, values?: readonly unknown[]) => {
        const rows = await t.db.query(text, values);
        read += rows.length;
        return rows;
      },
      transaction: t.db.transaction.bind(t.db),
    } as unknown as TestDatabase['db'];
    const jobs = jobsOf(t.db);
    const settling = { db: counting, events: on.events, readStored: on.readStored, reactors: [noting()], jobs };
    const [head] = await listDeadLetters(t.db);
    expect(await dropReaction(settling, head!.id)).toEqual({ retried: 30, dropped: 1, waiting: 0, error: null });
    expect(read).toBeLessThan(100);
  });

  test('a reaction that hangs has failed after its time, visibly, and what it still does has no effect', async () => {
    let release: (() => void) | undefined;
    let calls = 0;
    const hanging = reactor({
      name: 'hanging',
      from: 'beginning',
      events: [API_KEY_EVENTS],
      on: {
        'api_key:renamed': async ({ label }, { keep }) => {
          calls += 1;
          if (calls === 1) await new Promise<void>((resolve) => (release = resolve));
          keep('insert into noted (what) values ($1)', [label]);
        },
      },
    });
    await rename('one');
    const reactors = await drive([hanging], { reaction_ms: 100, tries: 1 });
    await until(() => reactors.status()[0]!.error?.includes('did not end within 100 ms') === true);
    await until(async () => (await noted()).length === 1);
    release!();
    await rename('two');
    await until(async () => (await noted()).length === 2);
    expect(await noted()).toEqual(['one', 'two']);
  });

  test('a reaction that goes on after its time neither moves the checkpoint back nor commands anything', async () => {
    let release!: () => void;
    const hung = new Promise<void>((resolve) => (release = resolve));
    const late: Promise<unknown>[] = [];
    const hanging = reactor({
      name: 'hanging',
      from: 'beginning',
      events: [API_KEY_EVENTS],
      on: {
        'api_key:renamed': async ({ key_id, label }, { keep, db, act }) => {
          if (late.length === 0) {
            late.push(
              hung.then(() => db.query('select 1 as one')),
              hung.then(() => act(apiKey, apiKeyStream(key_id), { type: 'api_key:rename', label: 'late' })),
            );
            await Promise.all(late);
          }
          keep('insert into noted (what) values ($1)', [label]);
        },
      },
    });
    const key_id = await createKey();
    await rename('one', key_id);
    await drive([hanging], { reaction_ms: 100 });
    await until(async () => (await noted()).length === 1);
    await rename('two');
    await until(async () => (await noted()).length === 2);
    const at = () => t.db.query(`select position from checkpoints where projection = 'reactor:hanging'`);
    const before = await at();
    release();
    const outcomes = await Promise.allSettled(late);
    expect(await at()).toEqual(before);
    expect(outcomes.map(({ status }) => status)).toEqual(['rejected', 'rejected']);
    expect((await on.events.read(apiKeyStream(key_id))).length).toBe(2);
  });

  test('an event that only a newer build can read is left to one, which goes on from there', async () => {
    const known = (types: readonly string[]) => versionedEventStore(on.events, createUpcasters([]), new Set(types));
    const other = await engines(t.db);
    const older = await drive([noting()], { node: { ...on, events: known(['api_key:renamed']) } });
    await rename('one');
    await append(apiKeyStream(v7()), 'api_key:paused', {});
    await rename('two');
    await until(() => older.status()[0]!.state === 'needs_newer_build');
    expect(await noted()).toEqual(['one']);
    const types = ['api_key:renamed', 'api_key:paused'];
    const newer = await drive([noting()], { node: { ...other, events: known(types) } });
    await until(async () => (await noted()).length === 2);
    await until(() => older.status()[0]!.state === 'standby');
    await newer.stop();
    // Taken away again: the older one goes on where it was.
    await rename('three');
    await until(async () => (await noted()).length === 3);
    await older.stop();
    await other.close();
  });

  test('its checkpoint follows the log when only other types go by', async () => {
    await drive([noting()]);
    await rename('one');
    await until(async () => (await noted()).length === 1);
    await joined();
    const head = (await on.events.head())!;
    await until(async () => (await readCheckpoints(t.db, readerOf(noting()))).get(0)!.position === head);
  });

  test('two processes: one reacts, the other takes over when it ends', async () => {
    const other = await engines(t.db);
    const [first, second] = [await drive([noting()]), await drive([noting()], { node: other })];
    for (let n = 0; n < 20; n += 1) await rename(`a${n}`);
    await until(async () => (await noted()).length === 20);
    await first.stop();
    for (let n = 0; n < 20; n += 1) await rename(`b${n}`);
    await until(async () => (await noted()).length === 40);
    expect(new Set(await noted()).size).toBe(40);
    await second.stop();
    await other.close();
  });

  test('what was kept for earlier events is there for a later one, in one batch too', async () => {
    const seen: number[] = [];
    for (let n = 0; n < 5; n += 1) await rename(`${n}`);
    const counting = reactor({
      name: 'counting',
      from: 'beginning',
      events: [API_KEY_EVENTS],
      on: {
        'api_key:renamed': async ({ label }, { db, keep }) => {
          keep('insert into noted (what) values ($1)', [label]);
          seen.push((await db.query('select 1 from noted')).length);
        },
      },
    });
    await drive([counting]);
    await until(async () => (await noted()).length === 5);
    expect(seen).toEqual([0, 1, 2, 3, 4]);
  });

  test('two commands on one stream in one reaction need a step each', async () => {
    const account_id = v7();
    const owner_id = v7();
    const create = {
      type: 'account:create',
      account_id,
      name: 'A',
      owner_id,
      membership_id: v7(),
      role_ids: ids(4),
      now,
    } as const;
    const twice = reactor({
      name: 'twice',
      from: 'beginning',
      events: [ACCOUNT_EVENTS],
      on: {
        'account:member_removed': async (_event, { act }) => {
          await act(account, accountStream(account_id), create);
          await act(account, accountStream(account_id), create);
        },
      },
    });
    await left();
    const reactors = await drive([twice]);
    await until(() => reactors.status()[0]!.state === 'failing');
    expect(reactors.status()[0]!.error).toContain('need a step each');
  });
});

const ids = (count: number) => Array.from({ length: count }, () => v7());
