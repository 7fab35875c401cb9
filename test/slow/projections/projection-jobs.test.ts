import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { rebuild } from '../../../projections/runtime/rebuild/rebuild';
import { retryDeadLetter } from '../../../projections/runtime/dead-letter/retry-letters';
import type { TestDatabase } from '../../support/database';
import { enginesOfEach } from '../../support/each';
import { asking, ASKING, EFFECTS, jobNode, noting, type JobNode, type Notebook } from '../../support/jobs';
import { type Engines, opened, runtimeOf, seeded, until } from '../../support/projections';

const CHILD = join(__dirname, '../../../dist/test/support/projector-child.js');

let t: TestDatabase;
let on: Engines;
let node: JobNode<Notebook>;
enginesOfEach(
  async (database, embedded) => {
    [t, on] = [database, embedded];
    await t.db.query(`${EFFECTS}; ${ASKING}`);
    node = await jobNode(t.url, [noting()], { outside: '/dev/null' });
  },
  { connections: 20, before: () => node.close() },
);

async function ask(count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, () => uuid());
  for (const thing_id of ids) {
    const event = { id: uuid(), type: 'thing:asked', data: { thing_id, note: `of ${thing_id}` } };
    await on.events.append([{ stream: `thing-${thing_id}`, expected: 'none', events: [event] }], {});
  }
  return ids.sort();
}
const asked = async () => (await t.db.query('select thing_id from asked order by 1')).map(({ thing_id }) => thing_id);
const done = async () =>
  (await t.db.query('select key from job_effects order by 1')).map(({ key }) => (key as string).split('/')[1]);

test('what came before it was driven asks for nothing, what comes then for one job each, a rebuild for none', async () => {
  const before = await ask(3);
  const runtime = runtimeOf(t.db, on, [asking], { jobs: node.jobs });
  await runtime.start();
  await until(async () => (await asked()).length === 3);
  const after = await ask(20);
  await until(async () => (await done()).length === 20);
  await rebuild({ db: t.db, ...on, projections: [asking], name: 'asking' });
  await runtime.stop();
  expect(await asked()).toEqual([...before, ...after].sort());
  expect(await done()).toEqual(after);
  expect(await t.db.query('select 1 from job_effects')).toHaveLength(20);
});

test('killed again and again between the events and its checkpoint: each event has its row and its job once', async () => {
  await opened(t.db, on, [asking]);
  const random = seeded(7);
  const all: string[] = [];
  for (let round = 0; round < 4; round += 1) {
    const child = spawn(process.execPath, [CHILD, 'asking', t.url], { stdio: ['ignore', 'pipe', 'inherit'] });
    await once(child.stdout, 'data');
    const had = (await asked()).length;
    all.push(...(await ask(60)));
    const some = had + 5 + Math.floor(random() * 40);
    await until(async () => (await asked()).length >= some);
    child.kill('SIGKILL');
    await once(child, 'exit');
  }
  const runtime = runtimeOf(t.db, on, [asking], { jobs: node.jobs });
  await runtime.start();
  await until(async () => (await done()).length >= all.length);
  await runtime.stop();
  expect(await asked()).toEqual(all.sort());
  expect(await done()).toEqual(all);
});

test('one that cannot be applied asks for nothing, and for its job when its letter is taken up', async () => {
  await opened(t.db, on, [asking]);
  const runtime = runtimeOf(t.db, on, [asking], { jobs: node.jobs });
  await runtime.start();
  const [twice] = await ask(1);
  await until(async () => (await done()).length === 1);
  const event = { id: uuid(), type: 'thing:asked', data: { thing_id: twice!, note: 'the same row' } };
  await on.events.append([{ stream: 'thing-twice', expected: 'none', events: [event] }], {});
  const [letter] = await until(async () => {
    const letters = await t.db.query<{ id: number }>('select id from dead_letters');
    return letters.length > 0 && letters;
  });
  await t.db.query('delete from asked; delete from finished_jobs');
  await retryDeadLetter({ db: t.db, ...on, projections: [asking], jobs: node.jobs }, letter!.id);
  await until(async () => (await done()).length === 2);
  await runtime.stop();
  expect(await asked()).toEqual([twice]);
});

test('a job that nobody has declared stops the start', async () => {
  const runtime = runtimeOf(t.db, on, [{ ...asking, jobs: ['unheard-of'] }], { jobs: node.jobs });
  await expect(runtime.start()).rejects.toThrow('projection asking asks for the job unheard-of: there is none');
});
