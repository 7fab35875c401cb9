import { z } from 'zod';
import { Lanes } from '../../engines/jobs/lanes';
import { trim } from '../../engines/jobs/rows';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import type { Row } from '../../engines/postgres/port';
import { job, NotSent, OutcomeUnknown, type JobDeclaration } from '../../kernel/job';
import { type TestDatabase, testDatabase } from '../support/database';
import { EFFECTS, jobNode, type JobNode } from '../support/jobs';
import { eventually } from '../support/vendor-cloud';

let t: TestDatabase;
const nodes: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  t = await testDatabase();
  await t.db.query(EFFECTS);
});
beforeEach(() =>
  t.db.query(
    'with jobs as (delete from graphile_worker._private_jobs), keys as (delete from finished_jobs) delete from job_effects',
  ),
);
afterEach(async () => {
  for (const node of nodes.splice(0)) await node.close();
});
afterAll(() => t.drop());

type Declared = JobDeclaration<undefined, { name: string }>;
const effects = async () =>
  (await t.db.query<{ note: string }>('select note from job_effects order by note')).map(({ note }) => note);
const note = (text: string) => (tx: { query(sql: string, values: unknown[]): Promise<unknown> }) =>
  tx.query('insert into job_effects (note) values ($1)', [text]);
const called = (options: Omit<Parameters<typeof job<undefined, { name: z.ZodString }>>[0], 'payload'>): Declared =>
  job({ ...options, payload: { name: z.string() } });

async function node(declared: readonly Declared[], { start = true } = {}) {
  const metrics = createPrometheusMetrics({});
  const made = await jobNode<undefined>(t.url, declared as JobDeclaration<undefined>[], undefined, { metrics, start });
  nodes.push(made);
  const ended = async (outcome: string) => {
    const found = (await metrics.render()).matchAll(
      new RegExp(`lumio_jobs_run_seconds_count\\{[^}]*outcome="${outcome}"\\} (\\d+)`, 'g'),
    );
    return [...found].reduce((sum, [, count]) => sum + Number(count), 0);
  };
  return { ...made, ended };
}
async function enqueue(on: JobNode<undefined>, one: Declared, name: string, more: { expires_at?: string } = {}) {
  await on.db.transaction((tx) => on.jobs.enqueue(tx, one, { key: name, payload: { name }, ...more }));
  on.jobs.wake();
}
const none = async (on: JobNode<undefined>) =>
  eventually(async () => ((await on.queue.list({ limit: 1 })).length === 0 ? true : undefined), 'no job to be left');
const from_now = (ms: number) => new Date(Date.now() + ms).toISOString();

test('an effect enqueues jobs in its own transaction: not when it fails, and once when it is done', async () => {
  let tries = 0;
  const next = called({ name: 'next', after_unknown: 'repeat', run: async ({ name }) => note(`next ${name}`) });
  const first = called({
    name: 'first',
    after_unknown: 'repeat',
    async run({ name }) {
      tries += 1;
      const number = tries;
      return async (_tx, { enqueue: add }) => {
        await add(next, { key: `${name}-${number}`, payload: { name: `${name}-${number}` } });
        if (number < 2) throw new Error('not yet');
      };
    },
  });
  const on = await node([first, next]);
  await enqueue(on, first, 'a');
  await eventually(async () => ((await effects()).length > 0 ? true : undefined), 'the second job');
  await none(on);
  expect(await effects()).toEqual([`next a-${tries}`]);
});

describe('a job that ends after an unknown outcome', () => {
  const asking = (run: Declared['run']) =>
    called({ name: 'asking', after_unknown: 'end', run, onUnknown: ({ name }) => note(`unknown ${name}`) });

  test.each([
    ['an error that names no outcome', () => new TypeError('x is not a function')],
    ['no answer', () => new OutcomeUnknown('no answer')],
  ])('is not repeated after %s, and stores it', async (_case, error) => {
    let calls = 0;
    const one = asking(async () => {
      calls += 1;
      throw error();
    });
    const on = await node([one]);
    await enqueue(on, one, 'a');
    await none(on);
    expect([calls, await effects(), await on.ended('unknown')]).toEqual([1, ['unknown a'], 1]);
    // The key counts.
    await enqueue(on, one, 'a');
    expect(await on.queue.list({ limit: 1 })).toEqual([]);
  });

  test('is repeated after a refusal before the call', async () => {
    let calls = 0;
    const one = asking(async ({ name }) => {
      calls += 1;
      if (calls === 1) throw new NotSent('too many calls');
      return note(`done ${name}`);
    });
    const on = await node([one]);
    await enqueue(on, one, 'a');
    await none(on);
    expect([calls, await effects()]).toEqual([2, ['done a']]);
  });

  test.each([
    ['passes', async () => true],
    ['fails', () => Promise.reject(new TypeError('no connection'))],
  ])('is repeated when the time of a try ended before its call and the check of its owner %s', async (_case, late) => {
    let checks = 0;
    let calls = 0;
    const one = called({
      name: 'asking',
      after_unknown: 'end',
      timeout_ms: 200,
      async isWanted() {
        checks += 1;
        if (checks > 1) return true;
        const over = AbortSignal.timeout(250);
        await new Promise((resolve) => over.addEventListener('abort', resolve));
        return late();
      },
      async run({ name }) {
        calls += 1;
        return note(`done ${name}`);
      },
      onUnknown: ({ name }) => note(`unknown ${name}`),
    });
    const on = await node([one]);
    await enqueue(on, one, 'a');
    await none(on);
    expect([checks > 1, calls, await effects()]).toEqual([true, 1, ['done a']]);
  });

  test.each([
    ['its first try', '1'],
    ['its last try', 'max_attempts'],
  ])('is not repeated when its process died in %s, even after its time', async (_case, attempts) => {
    let calls = 0;
    const one = asking(async () => void (calls += 1));
    const on = await node([one], { start: false });
    await enqueue(on, one, 'a', { expires_at: from_now(-1) });
    await t.db.query(
      `update graphile_worker._private_jobs
       set locked_by = 'dead', locked_at = now() - interval '1 minute', attempts = ${attempts}`,
    );
    on.running = await on.jobs.start();
    await none(on);
    expect([calls, await effects()]).toEqual([0, ['unknown a']]);
    await on.running.stop();
  });

  test('stores the outcome of a cut try when its owner ended meanwhile', async () => {
    const one = called({
      name: 'asking',
      after_unknown: 'end',
      owner: () => 'command',
      run: async () => undefined,
      onUnknown: ({ name }) => note(`unknown ${name}`),
    });
    const on = await node([one], { start: false });
    for (const name of ['cut', 'waiting']) await enqueue(on, one, name);
    await t.db.query(
      `update graphile_worker._private_jobs set attempts = 1, flags = flags || '{"interrupted": true}'
       where key = 'asking/cut'`,
    );
    expect(await on.db.transaction((tx) => on.jobs.cancel(tx, 'command'))).toBe(1);
    on.running = await on.jobs.start();
    await none(on);
    expect(await effects()).toEqual(['unknown cut']);
    await on.running.stop();
  });
});

test('a job makes no call after its time, nor plans one', async () => {
  const calls: string[] = [];
  const late = called({
    name: 'late',
    after_unknown: 'repeat',
    pauses: { first_ms: 3_600_000, most_ms: 3_600_000 },
    async run({ name }) {
      calls.push(name);
      throw new Error('not yet');
    },
  });
  const on = await node([late]);
  await enqueue(on, late, 'over', { expires_at: from_now(-1) });
  await enqueue(on, late, 'soon', { expires_at: from_now(600_000) });
  await none(on);
  expect([calls, await on.ended('expired'), await effects()]).toEqual([['soon'], 2, []]);
});

test('pauses between tries are those that the job declares', async () => {
  const slow = called({
    name: 'slow',
    after_unknown: 'repeat',
    pauses: { first_ms: 3_600_000, most_ms: 3_600_000 },
    run: () => Promise.reject(new Error('not yet')),
  });
  const on = await node([slow]);
  await enqueue(on, slow, 'a');
  const [waiting] = await eventually(async () => {
    const jobs = await on.queue.list({ state: 'waiting', limit: 1 });
    return jobs.length === 1 ? jobs : undefined;
  }, 'the pause');
  expect(Date.parse(waiting!.run_at) - Date.now()).toBeGreaterThan(1_000_000);
});

test('the end of an owner cancels its waiting jobs; one that runs next asks before its call', async () => {
  const calls: string[] = [];
  const wanted = new Set(['kept', 'gone']);
  const own = called({
    name: 'own',
    after_unknown: 'repeat',
    owner: ({ name }) => `command:${name}`,
    isWanted: async ({ name }) => wanted.has(name),
    run: async ({ name }) => void calls.push(name),
  });
  const on = await node([own], { start: false });
  for (const name of ['kept', 'cancelled', 'gone']) await enqueue(on, own, name);
  expect(await on.db.transaction((tx) => on.jobs.cancel(tx, 'command:cancelled'))).toBe(1);
  expect(await on.db.transaction((tx) => on.jobs.cancel(tx, 'command:'))).toBe(0);
  wanted.delete('gone');
  on.running = await on.jobs.start();
  await none(on);
  expect([calls, await on.ended('cancelled')]).toEqual([['kept'], 1]);
  await on.running.stop();
});

test('a lane runs four jobs at a time, and a full one delays no other', async () => {
  const running = new Set<string>();
  let most = 0;
  let open!: () => void;
  const gate = new Promise<void>((resolve) => (open = resolve));
  const call = called({
    name: 'call',
    after_unknown: 'repeat',
    lane: ({ name }) => name.split(':')[0]!,
    async run({ name }) {
      running.add(name);
      const in_lane = [...running].filter((each) => each.startsWith('full:')).length;
      most = Math.max(most, in_lane);
      if (name.startsWith('full:')) await gate;
      running.delete(name);
      return note(name);
    },
  });
  const on = await node([call]);
  const full = Array.from({ length: 30 }, (_, n) => `full:${String(n).padStart(2, '0')}`);
  for (const name of full) await enqueue(on, call, name);
  await eventually(async () => (running.size === 4 ? true : undefined), 'a full lane');
  for (const name of ['other:a', 'other:b', 'third:a']) await enqueue(on, call, name);
  await eventually(async () => ((await effects()).length === 3 ? true : undefined), 'the other lanes');
  expect([running.size, await effects()]).toEqual([4, ['other:a', 'other:b', 'third:a']]);
  open();
  await none(on);
  expect([most, (await effects()).length]).toEqual([4, 33]);
  // No try of a job was used up by waiting.
  expect(await on.ended('done')).toBe(33);
});

test('a job that ends after an unknown outcome declares its effect', () => {
  const run = async () => undefined;
  expect(() => job({ name: 'x', payload: {}, after_unknown: 'end', run })).toThrow('declares onUnknown');
  const onUnknown = () => async () => undefined;
  expect(() => job({ name: 'x', payload: {}, after_unknown: 'repeat', run, onUnknown })).toThrow('declares onUnknown');
});

test('ten busy lanes leave a place for an eleventh', () => {
  const lanes = new Lanes(40);
  const busy = Array.from({ length: 10 }, (_, n) => `lane-${n}`);
  const entered = busy.flatMap((lane) => Array.from({ length: 5 }, () => lanes.enter(lane)).filter(Boolean));
  expect(entered.length).toBeLessThan(40);
  expect(lanes.enter('eleventh')).toBe(true);
  expect(lanes.full()).toEqual(expect.arrayContaining(busy));
  for (const lane of busy.slice(1)) while (lanes.full().includes(lane)) lanes.leave(lane);
  expect(lanes.enter('twelfth')).toBe(true);
});

test('finished keys that are over are deleted in bounded statements, others stay', async () => {
  await t.db.query(
    `insert into finished_jobs (key, kept_until)
     select 'over-' || n, now() - interval '1 second' from generate_series(1, 20001) n
     union all select 'kept', now() + interval '1 day'`,
  );
  const counts: number[] = [];
  const db = {
    async query<R extends Row = Row>(text: string): Promise<R[]> {
      const rows = await t.db.query<R>(text);
      counts.push(rows.length);
      return rows;
    },
  };
  expect([await trim(db), Math.max(...counts)]).toEqual([20_001, 10_000]);
  expect(await t.db.query('select key from finished_jobs')).toEqual([{ key: 'kept' }]);
});
