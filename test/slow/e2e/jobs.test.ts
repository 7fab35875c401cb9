import { runLumio, startServer, type TestServer } from '../../support/server';
import { eventually } from '../../support/vendor-cloud';

let server: TestServer;
// Every job's period is longer than the test.
beforeAll(async () => (server = await startServer({ env: { LUMIO_HISTORY__COUNT_EVERY: '1h' } })));
afterAll(() => server?.dispose());

const db = () => server.database!.db;
const lumio = (...args: string[]) => runLumio(['jobs', ...args], server.env);
const finished = async () =>
  (await db().query<{ name: string }>(`select split_part(key, '/', 1) as name from finished_jobs`)).map(
    ({ name }) => name,
  );

test('upkeep is done at the first start, and by a restart in the same period not again', async () => {
  const before = await eventually(async () => {
    const done = await finished();
    return ['event-log-partitions', 'idempotency-keys', 'subject-keys'].every((name) => done.includes(name))
      ? done
      : undefined;
  }, 'the upkeep');
  expect(new Set(before).size).toBe(before.length);
  await server.stop();
  server = await server.restart();
  await eventually(async () => ((await db().query('select 1 from job_holders'))[0] ? true : undefined), 'the worker');
  const partitions = (await finished()).filter((name) => name === 'event-log-partitions');
  expect(partitions).toHaveLength(1);
});

test('lumio jobs lists, retries and drops; what is not there is said', async () => {
  expect(await lumio('list', '--state', 'failed')).toMatchObject({ code: 0, stdout: '' });
  // Of a build that knows more jobs than this one: it waits.
  const [{ id }] = (await db().query(
    `select id from graphile_worker.add_job('of-a-newer-build', '{}', job_key := 'of-a-newer-build/1', max_attempts := 1)`,
  )) as [{ id: number }];
  await db().query(`select graphile_worker.permanently_fail_jobs(array[${id}]::bigint[], 'outcome unknown: planted')`);
  const listed = await lumio('list', '--state', 'parked');
  expect(listed.stdout).toMatch(
    new RegExp(`^${id}\tof-a-newer-build/1\tparked\t1/1\t[^\t]+\toutcome unknown: planted\n$`),
  );
  expect(await lumio('retry', String(id), '999999')).toEqual({
    code: 1,
    stdout: '1 of 2 jobs will run now\n',
    stderr: 'lumio: the others run, or are not there\n',
  });
  const [shown] = (await lumio('list', '--job', 'of-a-newer-build', '--json')).stdout.split('\n');
  expect(JSON.parse(shown!)).toMatchObject({ id, state: 'ready', attempts: 0 });
  expect(await lumio('drop', String(id))).toMatchObject({ code: 0, stdout: '1 of 1 jobs dropped\n' });
  expect(await lumio('list', '--job', 'of-a-newer-build')).toMatchObject({ code: 0, stdout: '' });
  expect((await lumio('retry', 'x')).code).toBe(2);
});
