import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type JobDeclaration } from '../../../kernel/job';
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

describe('a process that is killed', () => {
  async function child(): Promise<ChildProcess> {
    const made = spawn(
      process.execPath,
      [join(__dirname, '../../../dist/test/support/jobs-child.js'), t.url, outside],
      {
        stdio: ['ignore', 'pipe', 'inherit'],
      },
    );
    children.push(made);
    await new Promise((resolve, reject) => {
      made.stdout!.once('data', resolve);
      made.once('exit', () => reject(new Error('the child ended')));
    });
    return made;
  }

  test('its jobs run again elsewhere, one effect each; those that must not be repeated are parked', async () => {
    const [again, once] = [noting('repeat'), noting('park')];
    const first = await node(t.url, [again, once], { outside }, { start: false });
    const victim = await child();
    await enqueue(first, again, 'again', 60_000);
    await enqueue(first, once, 'once', 60_000);
    await eventually(async () => (calls().length === 2 ? true : undefined), 'both to run');
    victim.kill('SIGKILL');
    await t.db.query(`update graphile_worker._private_jobs set payload = '{"note": "late", "wait_ms": 0}'`);
    const killed_at = performance.now();
    first.running = await first.jobs.start();
    await eventually(async () => ((await effects()).length === 1 ? true : undefined), 'the effect');
    await settled(first as unknown as JobNode<never>);
    expect(performance.now() - killed_at).toBeGreaterThan(900);
    expect(await effects()).toEqual([{ key: 'noting-repeat/again', note: 'late' }]);
    expect((await first.queue.list({ limit: 9 })).map(({ key, state }) => ({ key, state }))).toEqual([
      { key: 'noting-park/once', state: 'parked' },
    ]);
    expect(calls().filter((key) => key === 'noting-park/once')).toHaveLength(1);
  });

  test('while it lives nobody else has its jobs, though its link to the database was cut', async () => {
    const one = noting('repeat');
    const first = await node(t.url, [one], { outside }, { start: false });
    await child();
    await enqueue(first, one, 'long', 6_000);
    await eventually(async () => (calls().length === 1 ? true : undefined), 'it to run');
    first.running = await first.jobs.start();
    await t.asAdmin(`select pg_terminate_backend(pid) from pg_stat_activity
      where application_name = 'lumio process' and datname = current_database()`);
    await eventually(async () => ((await effects()).length === 1 ? true : undefined), 'the effect');
    expect(calls()).toEqual(['noting-repeat/long']);
  });
});
