import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { migrate } from '../../engines/postgres/migrate';
import { isPassing } from '../../kernel/failures';
import { retry } from '../../lib/async/retry';
import { EFFECTS, jobNode, type JobNode, noting, type Notebook } from '../support/jobs';
import { PATIENCE_MS, slowness } from '../support/patience';
import { startCluster } from './support/cluster';
import { dose, SEED, seeded, sleep, until } from './support/dose';

const WORKERS = 3;
/** Jobs whose worker or database is surely killed between their call and their effect. */
const HELD = ['of-a-killed-worker', 'of-a-killed-database'];
const CHILD = join(__dirname, '../../dist/test/support/jobs-child.js');

/** A PostgreSQL of its own with a database for jobs, and the file that their calls to the outside are noted in. */
async function openJobs() {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-faults-jobs-'));
  const outside = join(folder, 'calls');
  writeFileSync(outside, '');
  const cluster = await startCluster();
  const url = await cluster.createDatabase();
  await migrate(url);
  await cluster.query(url, EFFECTS);
  const dispose = async () => {
    await cluster.dispose();
    rmSync(folder, { recursive: true, force: true });
  };
  return { cluster, url, outside, dispose };
}

/** Workers and their database are killed while jobs come and run: each job has one effect, and none is forgotten. */
test('workers and PostgreSQL killed: one effect for each job, and no second call of one that must not be repeated', async () => {
  const random = seeded(SEED);
  const { cluster, url, outside, dispose } = await openJobs();
  const [again, once] = [noting('repeat'), noting('park')];
  const children: ChildProcess[] = [];
  let enqueuer: JobNode<Notebook> | undefined;
  let ending = false;

  const worker = async (): Promise<void> => {
    const child = spawn(process.execPath, [CHILD, url, outside], { stdio: ['ignore', 'pipe', 'ignore'] });
    children.push(child);
    // One that cannot start, since its database is away, ends and is started again.
    child.once('exit', () => {
      children.splice(children.indexOf(child), 1);
      if (!ending) void sleep(200).then(worker);
    });
  };

  try {
    enqueuer = await jobNode<Notebook>(url, [again, once], { outside }, { start: false });
    for (let n = 0; n < WORKERS; n += 1) await worker();

    const { db, jobs } = enqueuer;
    const enqueue = (one: typeof again, note: string, wait_ms: number, held = false): Promise<void> =>
      retry(() => db.transaction((tx) => jobs.enqueue(tx, one, { key: note, payload: { note, wait_ms, held } })), {
        passing: isPassing,
        first_ms: 50,
        most_ms: 500,
      });
    const calls = () => readFileSync(outside, 'utf8').split('\n').filter(Boolean);
    /** Enqueues a job of each kind, and waits until both are between their calls and their effects. */
    const hold = async (note: string): Promise<void> => {
      for (const one of [again, once]) await enqueue(one, note, 0, true);
      const keys = [`noting-repeat/${note}`, `noting-park/${note}`];
      await until(() => keys.every((key) => calls().includes(key)), 'both calls to be made');
    };
    await hold('of-a-killed-worker');
    for (const child of children) child.kill('SIGKILL');
    await hold('of-a-killed-database');
    await cluster.kill();
    await cluster.start();

    const seconds = dose(20, 240);
    const total = seconds * 10;
    const deadline = performance.now() + seconds * 1000;
    const killing = (async () => {
      while (performance.now() < deadline) {
        await sleep(600 + random() * 900);
        if (random() < 0.15) {
          await cluster.kill();
          await sleep(random() * 1_000);
          await cluster.start();
        } else children[Math.floor(random() * children.length)]?.kill('SIGKILL');
      }
    })();
    for (let n = 0; n < total; n += 1) {
      await enqueue(n % 4 === 0 ? once : again, String(n), Math.floor(random() * 300));
      await sleep((seconds * 1000) / total);
    }
    await killing;

    const left = () =>
      cluster.query(
        url,
        `select key, attempts >= max_attempts and locked_at is null as ended, last_error
         from graphile_worker._private_jobs`,
      ) as Promise<{ key: string; ended: boolean; last_error: string }[]>;
    await until(async () => (await left()).every(({ ended }) => ended), 'all jobs to end', 2 * PATIENCE_MS);

    const effects = (await cluster.query(url, 'select key from job_effects')).map(({ key }) => key as string);
    const parked = await left();
    expect(new Set(effects).size).toBe(effects.length);
    expect([...effects, ...parked.map(({ key }) => key)].sort()).toEqual(
      [
        ...HELD.flatMap((note) => [`noting-park/${note}`, `noting-repeat/${note}`]),
        ...Array.from({ length: total }, (_, n) => `noting-${n % 4 === 0 ? 'park' : 'repeat'}/${n}`),
      ].sort(),
    );
    expect(parked.filter(({ key }) => !key.startsWith('noting-park/'))).toEqual([]);
    expect(parked.filter(({ last_error }) => !last_error.startsWith('outcome unknown'))).toEqual([]);
    const made = calls();
    const parking = made.filter((key) => key.startsWith('noting-park/'));
    expect(new Set(parking).size).toBe(parking.length);
    for (const note of HELD) {
      expect(parked.map(({ key }) => key)).toContain(`noting-park/${note}`);
      expect(made.filter((key) => key === `noting-repeat/${note}`).length).toBeGreaterThan(1);
    }
  } finally {
    ending = true;
    for (const child of children) child.kill('SIGKILL');
    await enqueuer?.close().catch(() => undefined);
    await dispose();
  }
});

test('with the times of a real process: the jobs of a killed one run again within 60 s', async () => {
  const { cluster, url, outside, dispose } = await openJobs();
  const one = noting('repeat');
  const calls = () => readFileSync(outside, 'utf8').split('\n').filter(Boolean).length;
  const start = () => spawn(process.execPath, [CHILD, url, outside, 'earnest'], { stdio: 'ignore' });
  const children = [start()];
  const enqueuer = await jobNode<Notebook>(url, [one], { outside }, { start: false });
  try {
    const job = { key: 'long', payload: { note: 'long', wait_ms: 300_000 } };
    await enqueuer.db.transaction((tx) => enqueuer.jobs.enqueue(tx, one, job));
    await until(() => calls() === 1, 'the first try');
    children.push(start());
    const holders = async () => (await cluster.query(url, 'select 1 from job_holders')).length;
    await until(async () => (await holders()) === 2, 'the other worker');
    children[0]!.kill('SIGKILL');
    const killed_at = performance.now();
    await until(() => calls() === 2, 'the second try', 60_000 * slowness());
    // Not before it was surely dead.
    expect(performance.now() - killed_at).toBeGreaterThan(15_000);
  } finally {
    for (const child of children) child.kill('SIGKILL');
    await enqueuer.close();
    await dispose();
  }
});
