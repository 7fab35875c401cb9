import pg from 'pg';
import { type ApiProcess, startSampleApi, sampleApiOfFile } from '../../support/api-process';
import type { Answer } from '../../support/door';
import type { TestDatabase } from '../../support/database';
import { PATIENCE_MS } from '../../support/patience';

let database: TestDatabase;
let api: ApiProcess;
sampleApiOfFile((one, of) => ([api, database] = [one, of]));

describe('Idempotency-Key of a process that dies', () => {
  const releases: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const release of releases.splice(0)) await release();
  });
  const body = { note_text: 'behind a lock' };
  const create = (node: ApiProcess, key: string) =>
    node.rest('POST', '/v1/notes', { body, headers: { 'idempotency-key': key } });
  /** Sends until the key is no longer held; how long that took. */
  async function retried(node: ApiProcess, key: string): Promise<{ answer: Answer; ms: number }> {
    const started = Date.now();
    for (;;) {
      const answer = await create(node, key);
      const ms = Date.now() - started;
      if (answer.status !== 409 || ms > PATIENCE_MS) return { answer, ms };
      expect(answer.headers.get('retry-after')).toBe('1');
      await new Promise((resolve) => setTimeout(resolve, 100));
    }
  }
  /** The sample operation waits for this lock: a request stays in progress for as long as the test holds it. */
  async function lock(): Promise<{ release(): Promise<void> }> {
    const client = new pg.Client({ connectionString: database.url });
    await client.connect();
    await client.query('select pg_advisory_lock(4711)');
    const release = () => client.end();
    releases.push(release);
    return { release };
  }
  async function inProgress(count: number): Promise<void> {
    const waiting = 'select 1 from pg_locks where locktype = $1 and objid = 4711 and not granted';
    for (const deadline = Date.now() + PATIENCE_MS; ;) {
      if ((await database.db.query(waiting, ['advisory'])).length >= count) return;
      if (Date.now() > deadline) throw new Error('the request did not begin');
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
  }

  test('held while its process lives, free as soon as it is killed; the retry works under the same seed', async () => {
    const held = await lock();
    const first = await startSampleApi(database.url);
    const lost = create(first, 'd1').then(
      () => 'answered',
      () => 'cut',
    );
    await inProgress(1);
    for (let n = 0; n < 3; n += 1) expect((await create(api, 'd1')).status).toBe(409);
    const [before] = await database.db.query(
      'select seed from idempotency_keys where holder is not null and answer is null',
    );
    expect(before).toBeDefined();
    await first.kill();
    expect(await lost).toBe('cut');
    const retry = retried(api, 'd1');
    await inProgress(1);
    await held.release();
    const { answer, ms } = await retry;
    expect(answer.status).toBe(201);
    // Held by its time alone it would be for a minute.
    expect(ms).toBeLessThan(30_000);
    const [after] = await database.db.query(
      'select seed, answer is null as open from idempotency_keys where seed = $1',
      [before!.seed],
    );
    expect(after).toMatchObject({ open: false });
    expect((await create(api, 'd1')).text).toBe(answer.text);
  });

  test('a holder that could not show itself to live is believed to, for a time', async () => {
    const held = await lock();
    const node = await startSampleApi(database.url);
    const lost = create(node, 'd2').then(
      () => 'answered',
      () => 'cut',
    );
    await inProgress(1);
    await database.db.query('update idempotency_keys set holder = null where answer is null');
    await node.kill();
    expect(await lost).toBe('cut');
    expect((await create(api, 'd2')).status).toBe(409);
    await database.db.query("update idempotency_keys set locked_until = now() - interval '1 s' where answer is null");
    const retry = retried(api, 'd2');
    await inProgress(1);
    await held.release();
    expect((await retry).answer.status).toBe(201);
  });
});
