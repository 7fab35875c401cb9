import { type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { periodic, type JobDeclaration } from '../../../kernel/job';
import { type TestDatabase, testDatabase } from '../../support/database';
import { EFFECTS, jobNode, noting, type JobNode, type Notebook } from '../../support/jobs';
import { eventually } from '../../support/vendor-cloud';

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

async function enqueue(
  on: JobNode<Notebook>,
  one: JobDeclaration<Notebook, { note: string; wait_ms: number }>,
  note: string,
  wait_ms = 0,
) {
  await on.db.transaction((tx) => on.jobs.enqueue(tx, one, { key: note, payload: { note, wait_ms } }));
  on.jobs.wake();
}

test('a worker that stops lets its jobs end, and gives back what does not end in time without counting the try', async () => {
  const one = noting();
  const on = await node(t.url, [one], { outside });
  await enqueue(on, one, 'short', 1_500);
  await enqueue(on, one, 'long', 600_000);
  await eventually(async () => (calls().length === 2 ? true : undefined), 'both to run');
  await on.running!.stop();
  on.running = undefined;
  expect(await effects()).toEqual([{ key: 'noting-repeat/short', note: 'short' }]);
  expect((await on.queue.list({ limit: 9 })).map(({ key, state, attempts }) => ({ key, state, attempts }))).toEqual([
    { key: 'noting-repeat/long', state: 'ready', attempts: 0 },
  ]);
  expect(await t.db.query('select 1 from job_holders')).toEqual([]);
});

test('a worker that stops leaves a job behind that ignores its signal, and gives it back', async () => {
  let runs = 0;
  let release!: () => void;
  const released = new Promise<void>((resolve) => (release = resolve));
  const deaf = periodic({
    name: 'deaf',
    every_ms: 3_600_000,
    run: async () => {
      runs += 1;
      await released;
      return 0;
    },
  });
  const on = await node(t.url, [deaf], undefined);
  await eventually(async () => (runs === 1 ? true : undefined), 'the job to run');
  await on.running!.stop();
  on.running = undefined;
  expect((await on.queue.list({ limit: 9 })).map(({ state, attempts }) => ({ state, attempts }))).toEqual([
    { state: 'ready', attempts: 0 },
  ]);
  release();
});
