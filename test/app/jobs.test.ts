import { type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { z } from 'zod';
import { claimedJob, type JobRow } from '../../engines/jobs/claimed';
import { JobLost } from '../../engines/jobs/port';
import { JOB_SCHEMA_STEP } from '../../engines/jobs/schema';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { subject } from '../../kernel/event';
import { job, JobRefused, NotSent, OutcomeUnknown, periodic, type JobDeclaration } from '../../kernel/job';
import { createBackup } from '../../engines/backup/backup';
import { restoreBackup } from '../../engines/backup/restore';
import { createFileBlobs } from '../../engines/blobs/files';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { emptyDatabase, type TestDatabase, testDatabase } from '../support/database';
import { EFFECTS, jobNode, noting, type JobNode, type Notebook } from '../support/jobs';
import { eventually } from '../support/vendor-cloud';

let t: TestDatabase;
let folder: string;
let outside: string;
const nodes: { close(): Promise<void> }[] = [];
const children: ChildProcess[] = [];

beforeEach(async () => {
  t = await testDatabase();
  await t.db.query(EFFECTS);
  folder = mkdtempSync(join(tmpdir(), 'lumio-jobs-'));
  outside = join(folder, 'calls');
});
afterEach(async () => {
  for (const child of children.splice(0)) child.kill('SIGKILL');
  for (const node of nodes.splice(0)) await node.close();
  await t.drop();
  rmSync(folder, { recursive: true, force: true });
});

async function node<Services>(...given: Parameters<typeof jobNode<Services>>): Promise<JobNode<Services>> {
  const made = await jobNode(...given);
  nodes.push(made);
  return made;
}
const effects = () => t.db.query<{ key: string; note: string }>('select key, note from job_effects order by note');
const calls = () => (existsSync(outside) ? readFileSync(outside, 'utf8').split('\n').filter(Boolean) : []);
const settled = (on: JobNode<never>) =>
  eventually(
    async () =>
      (await on.queue.counts()).every(({ state }) => state === 'failed' || state === 'parked') ? true : undefined,
    'the jobs to end',
  );

async function enqueue(
  on: JobNode<Notebook>,
  one: JobDeclaration<Notebook, { note: string; wait_ms: number }>,
  note: string,
  wait_ms = 0,
) {
  await on.db.transaction((tx) => on.jobs.enqueue(tx, one, { key: note, payload: { note, wait_ms } }));
  on.jobs.wake();
}

test('workers that start and stop leave no listeners on their pool', async () => {
  const on = await node(t.url, [noting()], { outside }, { start: false });
  const listeners = () => on.db.pool.eventNames().map((name) => [name, on.db.pool.listenerCount(name)]);
  const before = listeners();
  for (let n = 0; n < 3; n += 1) await (await on.jobs.start()).stop();
  expect(listeners()).toEqual(before);
});

test('the library sends no ends of jobs, which would end the process while the database is unavailable', async () => {
  const one = noting();
  const broken = { ...one, name: 'broken', run: () => Promise.reject(new JobRefused('broken')) };
  const on = await node(t.url, [one, broken], { outside });
  const ends: string[] = [];
  const connect = on.db.pool.connect.bind(on.db.pool) as () => Promise<never>;
  const refusing = (...given: []) => {
    const end = /batch(?:Complete|Fail)Jobs/.exec(new Error().stack ?? '');
    if (end === null) return connect(...given);
    ends.push(end[0]);
    return Promise.reject(Object.assign(new Error('connect'), { code: 'ECONNREFUSED' }));
  };
  jest.spyOn(on.db.pool, 'connect').mockImplementation(refusing as never);
  for (const declared of [one, broken, one]) await enqueue(on, declared, `${declared.name}-${Math.random()}`);
  await eventually(async () => ((await effects()).length === 2 ? true : undefined), 'the effects');
  await settled(on);
  expect(ends).toEqual([]);
});

test('a job comes with the transaction that enqueued it, or not at all, and its key counts once for ever', async () => {
  const one = noting();
  const on = await node(t.url, [one], { outside });
  const undone = on.db.transaction(async (tx) => {
    await on.jobs.enqueue(tx, one, { key: 'undone', payload: { note: 'undone', wait_ms: 0 } });
    throw new Error('undone');
  });
  await expect(undone).rejects.toThrow('undone');
  await enqueue(on, one, 'a');
  await enqueue(on, one, 'a');
  await eventually(async () => ((await effects()).length > 0 ? true : undefined), 'the effect');
  await settled(on);
  await enqueue(on, one, 'a');
  await enqueue(on, one, 'b');
  await eventually(async () => ((await effects()).length === 2 ? true : undefined), 'the second');
  expect(await effects()).toEqual([
    { key: 'noting-repeat/a', note: 'a' },
    { key: 'noting-repeat/b', note: 'b' },
  ]);
  expect(calls()).toEqual(['noting-repeat/a', 'noting-repeat/b']);
});

test('an enqueue sends no NOTIFY', async () => {
  const one = noting();
  const on = await node(t.url, [one], { outside }, { start: false });
  const listener = await t.adminClient();
  const heard: string[] = [];
  listener.on('notification', ({ channel }) => heard.push(channel));
  await listener.query('listen "jobs:insert"');
  await enqueue(on, one, 'a');
  // The listener hears what was sent before its next answer.
  await listener.query('select 1');
  expect(heard).toEqual([]);
  await t.db.query(`select graphile_worker.add_job('other')`);
  await eventually(async () => {
    await listener.query('select 1');
    return heard.length > 0 ? true : undefined;
  }, 'the NOTIFY of the library itself');
  await listener.end();
});

test('the effect and the end of its job are one: what fails leaves neither, and is tried again under one key', async () => {
  const seen: string[] = [];
  const flaky = job({
    name: 'flaky',
    payload: {},
    after_unknown: 'repeat',
    retries: 5,
    async run(_payload, { key, number }) {
      seen.push(key);
      return async (tx) => {
        await tx.query('insert into job_effects (key, note) values ($1, $2)', [key, String(number)]);
        if (number < 3) throw new Error('not yet');
      };
    },
  });
  const metrics = createPrometheusMetrics({});
  const on = await node(t.url, [flaky as JobDeclaration], undefined, { metrics });
  await on.db.transaction((tx) => on.jobs.enqueue(tx, flaky as JobDeclaration, { key: 'x', payload: {} }));
  await eventually(async () => ((await effects()).length > 0 ? true : undefined), 'the effect');
  expect(await effects()).toEqual([{ key: 'flaky/x', note: '3' }]);
  expect(seen).toEqual(['flaky/x', 'flaky/x', 'flaky/x']);
  // A busy machine may lose the lease of a try that fails: that is counted as lost.
  const failed = /lumio_jobs_run_seconds_count\{name="flaky",outcome="(?:again|lost)"\} (\d+)/g;
  const counts = [...(await metrics.render()).matchAll(failed)].map(([, count]) => Number(count));
  expect(counts.reduce((sum, count) => sum + count, 0)).toBe(2);
});

test('a job that fails every try, and one that is refused, wait for an operator, who runs or drops them', async () => {
  let mended = false;
  const broken = job({
    name: 'broken',
    payload: { refuse: z.boolean() },
    after_unknown: 'repeat',
    retries: 1,
    async run({ refuse }, { key }) {
      if (mended) return (tx) => tx.query('insert into job_effects (key) values ($1)', [key]);
      // What the other side said may hold what PostgreSQL's texts cannot.
      throw refuse ? new JobRefused('never\0') : new Error('broken');
    },
  });
  const on = await node(t.url, [broken as JobDeclaration], undefined);
  for (const refuse of [false, true]) {
    const payload = { refuse };
    await on.db.transaction((tx) => on.jobs.enqueue(tx, broken as JobDeclaration, { key: String(refuse), payload }));
  }
  const failed = await eventually(async () => {
    const rows = await on.queue.list({ state: 'failed', limit: 10 });
    return rows.length === 2 ? rows : undefined;
  }, 'both to fail');
  expect(failed.map(({ key, attempts, tries, error }) => ({ key, attempts, tries, error }))).toEqual([
    { key: 'broken/false', attempts: 2, tries: 2, error: 'Error: broken' },
    { key: 'broken/true', attempts: 2, tries: 2, error: 'JobRefused: never\ufffd' },
  ]);
  mended = true;
  const [first, second] = failed.map(({ id }) => id);
  expect(await on.queue.drop([second!])).toBe(1);
  expect(await on.queue.retry([first!])).toBe(1);
  on.queue.wake();
  await eventually(async () => ((await effects()).length === 1 ? true : undefined), 'the effect');
  await settled(on as JobNode<never>);
  expect(await on.queue.list({ limit: 10 })).toEqual([]);
});

test.each(['repeat', 'park'] as const)('after an unknown outcome a job does as it says: %s', async (after_unknown) => {
  let tries = 0;
  const asking = job({
    name: 'asking',
    payload: {},
    after_unknown,
    async run() {
      tries += 1;
      if (tries === 1) throw new OutcomeUnknown('no answer\0');
    },
  }) as JobDeclaration;
  const on = await node(t.url, [asking], undefined);
  await on.db.transaction((tx) => on.jobs.enqueue(tx, asking, { key: 'x', payload: {} }));
  await eventually(async () => (tries > 0 ? true : undefined), 'the try');
  await settled(on as JobNode<never>);
  const left = await on.queue.list({ limit: 10 });
  // On a busy machine the repetition may lose its lease, and is then made once more.
  expect({ repeated: tries > 1, left: left.map(({ state, error }) => ({ state, error })) }).toEqual(
    after_unknown === 'repeat'
      ? { repeated: true, left: [] }
      : { repeated: false, left: [{ state: 'parked', error: 'outcome unknown: OutcomeUnknown: no answer\ufffd' }] },
  );
});

test('a job that parks is not repeated after an error that says nothing of its outcome, but after one that does', async () => {
  const tries = { mistake: 0, refused: 0 };
  const paying = job({
    name: 'paying',
    payload: { as: z.enum(['mistake', 'refused']) },
    after_unknown: 'park',
    async run({ as }) {
      tries[as] += 1;
      if (as === 'mistake') throw new TypeError('x is not a function');
      if (tries.refused === 1) throw new NotSent('too many calls');
    },
  }) as JobDeclaration;
  const on = await node(t.url, [paying], undefined);
  for (const as of ['mistake', 'refused'])
    await on.db.transaction((tx) => on.jobs.enqueue(tx, paying, { key: as, payload: { as } }));
  await eventually(async () => (tries.mistake > 0 && tries.refused > 1 ? true : undefined), 'the tries');
  await settled(on as JobNode<never>);
  expect({ mistake: tries.mistake, refused_again: tries.refused > 1 }).toEqual({ mistake: 1, refused_again: true });
  expect((await on.queue.list({ limit: 10 })).map(({ key, state }) => [key, state])).toEqual([
    ['paying/mistake', 'parked'],
  ]);
});

test('who asks for no pause gets the one that grows all the same: its tries are not used up at once', async () => {
  const pauses_ms: number[] = [];
  let failed_at = '';
  const busy = job({
    name: 'busy',
    payload: {},
    after_unknown: 'repeat',
    retries: 5,
    async run(_payload, { number }) {
      const [row] = await t.db.query<{ at: string; pause_ms: number }>(
        `select clock_timestamp()::text as at, extract(epoch from run_at - nullif($1, '')::timestamptz)::float8 * 1000
           as pause_ms from graphile_worker._private_jobs`,
        [failed_at],
      );
      pauses_ms.push(row!.pause_ms);
      failed_at = row!.at;
      if (number < 6) throw Object.assign(new Error('busy'), { retry_after_ms: 0 });
    },
  }) as JobDeclaration;
  const on = await node(t.url, [busy], undefined);
  await on.db.transaction((tx) => on.jobs.enqueue(tx, busy, { key: 'x', payload: {} }));
  await eventually(async () => (pauses_ms.length === 6 ? true : undefined), 'all tries');
  // The longest that these tests allow is 100 ms, drawn from its half on.
  for (const pause_ms of pauses_ms.slice(-2)) expect(pause_ms).toBeGreaterThanOrEqual(50);
});

test('what is personal in a payload lies encrypted, and is null once the person was erased', async () => {
  const seen: (string | null)[] = [];
  const mailing = job({
    name: 'mailing',
    payload: { user_id: z.string(), address: z.string().nullable() },
    personal: { address: subject('user', 'user_id') },
    after_unknown: 'repeat',
    async run({ address }) {
      seen.push(address);
      throw new Error(`nobody at ${address}`);
    },
  });
  const declared = mailing as unknown as JobDeclaration;
  const on = await node(t.url, [declared], undefined, { start: false });
  const payload = { user_id: 'u1', address: 'ada@example.org' };
  await on.db.transaction((tx) => on.jobs.enqueue(tx, declared, { key: 'x', payload }));
  const everything = async () => JSON.stringify(await t.db.query('select * from graphile_worker._private_jobs'));
  expect(await everything()).toContain('u1');
  expect(await everything()).not.toContain('ada@example');
  on.running = await on.jobs.start();
  await eventually(async () => (seen.length > 0 ? true : undefined), 'the first try');
  await on.subject_keys.erase('user:u1');
  await eventually(async () => (seen.includes(null) ? true : undefined), 'a try after the erasure');
  expect(seen[0]).toBe('ada@example.org');
  expect(await everything()).not.toContain('ada@example');
});

test('a periodic job is made once in its period, by one of two processes', async () => {
  const done: string[] = [];
  const sweep = (who: string) => periodic({ name: 'sweep', every_ms: 86_400_000, run: async () => done.push(who) });
  await Promise.all([node(t.url, [sweep('a')], undefined), node(t.url, [sweep('b')], undefined)]);
  const finished = await eventually(
    async () => (await t.db.query('select key, kept_until > now() as kept from finished_jobs'))[0],
    'the sweep',
  );
  expect(finished).toEqual({
    key: expect.stringMatching(/^sweep\/\d{4}-\d\d-\d\dT(?!00:00)\d\d:\d\d:\d\d.\d{3}Z$/),
    kept: true,
  });
  await (await node(t.url, [sweep('c')], undefined)).queue.trim();
  expect(done).toHaveLength(1);
});

test('a periodic job that has used up all its tries holds up none of the periods after it', async () => {
  const again = periodic({ name: 'again', every_ms: 1_000, run: async () => 0 });
  const on = await node(t.url, [again], undefined, { start: false });
  const period = (key: string) =>
    on.db.transaction((tx) =>
      on.queue.enqueue(tx, [{ name: 'again', key, payload: {}, tries: 3, after_unknown: 'repeat', alone: true }]),
    );
  expect([await period('one'), await period('two')]).toEqual([1, 0]);
  await t.db.query('update graphile_worker._private_jobs set attempts = max_attempts, locked_at = now()');
  expect(await period('two')).toBe(0);
  await t.db.query('update graphile_worker._private_jobs set locked_at = null');
  expect([await period('two'), await period('three')]).toEqual([1, 0]);
});

test('periodic jobs of two workers are done once a period, by either, and by the other after it; one that fails holds up none', async () => {
  const done: { who: string; key: string }[] = [];
  const sweep = (who: string) => {
    const declared = periodic({ name: 'sweep', every_ms: 40, run: async () => 0 });
    const run: typeof declared.run = async (_payload, { key }) => void done.push({ who, key });
    return { ...declared, run };
  };
  const broken = periodic({ name: 'broken', every_ms: 40, run: () => Promise.reject(new Error('broken')) });
  const a = await node(t.url, [sweep('a'), broken], undefined);
  await node(t.url, [sweep('b'), broken], undefined);
  await eventually(async () => (done.length > 20 ? true : undefined), 'both to work');
  await a.running!.stop();
  a.running = undefined;
  const stopped_at = done.length;
  await eventually(async () => (done.length > stopped_at + 5 ? true : undefined), 'the other to go on');
  expect(new Set(done.slice(stopped_at).map(({ who }) => who))).toEqual(new Set(['b']));
  expect(new Set(done.map(({ key }) => key)).size).toBe(done.length);
  expect((await a.queue.list({ name: 'broken', limit: 9 })).map(({ state }) => state === 'failed')).toEqual([false]);
});

test('a backup holds jobs and finished keys: restored, what waited or ran then runs under its key, what was done stays done', async () => {
  const one = noting();
  const on = await node(t.url, [one], { outside });
  await enqueue(on, one, 'done');
  await eventually(async () => (await t.db.query('select 1 from finished_jobs'))[0], 'the first');
  await on.running!.stop();
  on.running = undefined;
  for (const note of ['runs', 'waits']) await enqueue(on, one, note);
  await t.db.query(`update graphile_worker._private_jobs set locked_at = now(), locked_by = 'of the old installation',
    attempts = 1 where key = 'noting-repeat/runs'`);
  const target = await createFileBlobs(join(folder, 'backup'));
  const blobs = await createFileBlobs(join(folder, 'blobs'));
  const secrets = createSecretBox(parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`));
  const made = { target, blobs, secrets, prefix: '', copy_blobs: false, leave_out: ['job_holders', 'job_effects'] };
  await createBackup({ ...made, pool: t.db.pool, engines: { events: 'e', broker: 'b' }, version: '1' });
  const fresh = await emptyDatabase();
  try {
    await restoreBackup({ url: fresh.url, from: target, prefix: '', secrets });
    await fresh.db.query(EFFECTS);
    const there = await jobNode(fresh.url, [one], { outside });
    await enqueue(there, one, 'done');
    await enqueue(there, one, 'new');
    const notes = async () =>
      (await fresh.db.query('select note from job_effects order by note')).map(({ note }) => note);
    await eventually(async () => ((await notes()).length === 3 ? true : undefined), 'three effects');
    await settled(there as unknown as JobNode<never>);
    expect(await notes()).toEqual(['new', 'runs', 'waits']);
    expect(calls().filter((key) => key === 'noting-repeat/done')).toHaveLength(1);
    await there.close();
  } finally {
    await fresh.drop();
  }
});

test('workers that stop while they say that they live leave no holder behind', async () => {
  const one = noting();
  const on = await node(t.url, [one], { outside }, { beat_ms: 1 });
  for (let times = 0; times < 10; times += 1) {
    on.running ??= await on.jobs.start();
    const [{ n }] = (await t.db.query('select count(*)::int as n from job_holders')) as [{ n: number }];
    expect(n).toBeLessThanOrEqual(1);
    await on.running.stop();
    on.running = undefined;
    expect(await t.db.query('select 1 from job_holders')).toEqual([]);
  }
});

test('the library installs the step that this build was tested with', async () => {
  const [{ newest }] = (await t.db.query('select max(id) as newest from graphile_worker.migrations')) as [
    { newest: number },
  ];
  expect(newest).toBe(JOB_SCHEMA_STEP);
});

test('the end of a try that was released is not the end of the next one, though the same process runs it', async () => {
  const idle = job({
    name: 'idle',
    payload: {},
    after_unknown: 'park',
    run: () => Promise.resolve(),
  }) as JobDeclaration;
  const on = await node(t.url, [idle], undefined, { start: false });
  await on.db.transaction((tx) => on.jobs.enqueue(tx, idle, { key: 'x', payload: {} }));
  const taken = async (attempts: number) => {
    const [row] = await on.db.query<JobRow>(
      `update graphile_worker._private_jobs set locked_at = now(), locked_by = 'pool', attempts = $1
       where key = 'idle/x' returning id, key, 'idle' as task_identifier, payload, attempts, max_attempts,
         created_at, flags`,
      [attempts],
    );
    return claimedJob(row!, { db: on.db, pool: 'pool', signal: new AbortController().signal });
  };
  const before = await taken(1);
  const now = await taken(2);
  await expect(before.giveBack()).rejects.toThrow(JobLost);
  await expect(before.again('late', 0)).rejects.toThrow(JobLost);
  await expect(before.finish()).rejects.toThrow(JobLost);
  expect((await on.queue.list({ limit: 1 })).map(({ state, attempts }) => [state, attempts])).toEqual([['running', 2]]);
  expect(await now.finish()).toBe(true);
});

test('the library does not release the next try of a job that its own pool runs', async () => {
  const idle = job({
    name: 'idle',
    payload: {},
    after_unknown: 'repeat',
    run: () => Promise.resolve(),
  }) as JobDeclaration;
  const on = await node(t.url, [idle], undefined, { start: false });
  const put = (key: string) => on.db.transaction((tx) => on.jobs.enqueue(tx, idle, { key, payload: {} }));
  const begun: string[] = [];
  const ended: boolean[] = [];
  const has = (count: number) => eventually(async () => (begun.length >= count ? true : undefined), 'another try');
  const workers = await on.queue.work({
    names: ['idle'],
    concurrency: 2,
    async run(held) {
      begun.push(held.key);
      if (held.key === 'idle/other') return void (await held.finish());
      if (begun.length === 1) {
        await held.giveBack();
        await has(2);
        return;
      }
      // The first worker takes the other job only after it has ended the first try.
      await put('other');
      await has(3);
      ended.push(await held.finish());
    },
  });
  try {
    await put('x');
    await eventually(async () => (ended.length > 0 ? true : undefined), 'the end');
    expect(begun).toEqual(['idle/x', 'idle/x', 'idle/other']);
    expect(ended).toEqual([true]);
  } finally {
    await workers.stop(1000);
  }
});
