import pg from 'pg';
import { answersEraser } from '../../api/rest/idempotency-erasure';
import type { ErasureServices } from '../../kernel/eraser';
import { type ApiProcess, OWNER, startSampleApi, sampleApiOfFile } from '../support/api-process';
import type { TestDatabase } from '../support/database';
import { PATIENCE_MS } from '../support/patience';
import { until } from '../support/projections';

let database: TestDatabase;
let api: ApiProcess;
sampleApiOfFile((one, of) => ([api, database] = [one, of]));

describe('Idempotency-Key', () => {
  const create = (key: string, note_text: string, as = OWNER) =>
    api.rest('POST', '/v1/notes', { as, body: { note_text }, headers: { 'idempotency-key': key } });
  test('the same request gets the first answer again, another body and another caller do not', async () => {
    const first = await create('k1', 'once');
    const again = await create('k1', 'once');
    expect([again.status, again.text]).toEqual([201, first.text]);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(first.json.data.raw.seed).toMatch(/^[0-9a-f]{64}$/);
    expect((await create('k1', 'other')).json).toEqual({
      error: 'CONFLICT',
      message: 'This Idempotency-Key was already used for another request',
    });
    const stranger = await create('k1', 'once', 'user_api_key|notes:create');
    expect(stranger.headers.get('idempotency-replayed')).toBeNull();
  });
  test('while the first runs a second is refused; of ten at once one works', async () => {
    const held = new pg.Client({ connectionString: database.url });
    await held.connect();
    await held.query('select pg_advisory_lock(4711)');
    let refused = 0;
    const answers = Array.from({ length: 10 }, async () => {
      const { status } = await create('k2', 'behind a lock');
      if (status === 409) refused += 1;
      return status;
    });
    await until(() => refused === 9);
    await held.end();
    expect((await Promise.all(answers)).sort()).toEqual([201, ...Array<number>(9).fill(409)]);
  });
  test('refusals are kept, our failures are not', async () => {
    const taken = await create('k3', 'taken');
    expect((await create('k3', 'taken')).text).toBe(taken.text);
    expect((await create('k4', 'broken')).status).toBe(500);
    expect((await create('k4', 'broken')).status).toBe(500);
  });
  test('a claim whose answer got lost holds nobody up: no request of this process works under the key', async () => {
    expect((await create('k5', 'once')).status).toBe(201);
    expect((await create('k6', 'broken')).status).toBe(500);
    // As the claim was stored, by a process that lives, when its connection broke before it was told.
    const held = await database.db.query(
      `update idempotency_keys set holder = (select max(holder) from idempotency_keys)
       where created_at = (select max(created_at) from idempotency_keys where answer is null) returning holder`,
    );
    expect(held.map(({ holder }) => typeof holder)).toContain('number');
    expect((await create('k6', 'broken')).status).toBe(500);
  });
  test('the answers of a person go with them, and nobody else’s', async () => {
    const first = await create('k7', 'mine');
    const [{ user_id: id } = {}] = await database.db.query(
      'select distinct user_id from idempotency_keys where user_id is not null',
    );
    const erase = (kind: string, erased: string) =>
      answersEraser.erase({ subject: `${kind}:${erased}`, kind, id: erased }, {
        db: database.db,
      } as Partial<ErasureServices> as ErasureServices);
    expect(await erase('user', 'another')).toBeNull();
    expect(await erase('kick', id as string)).toBeNull();
    expect((await create('k7', 'mine')).text).toBe(first.text);
    expect(await erase('user', id as string)).toMatch(/^\d+ kept answers deleted$/);
    expect((await create('k7', 'mine')).headers.get('idempotency-replayed')).toBeNull();
  });
  test('a key is 1 to 255 characters', async () => {
    expect((await create('x'.repeat(256), 'a')).json.error).toBe('VALIDATION_ERROR');
  });
  test('neither key nor answer is readable in the database', async () => {
    await create('my-secret-key', 'my-secret-note');
    const rows = await database.db.query('select * from idempotency_keys');
    const stored = rows
      .map((row) =>
        Object.values(row).map((value) => (Buffer.isBuffer(value) ? value.toString('latin1') : String(value))),
      )
      .join();
    expect(rows.length).toBeGreaterThan(0);
    expect(stored).not.toContain('my-secret');
  });
});

describe('Idempotency-Key of a process that dies', () => {
  const releases: (() => Promise<void>)[] = [];
  afterEach(async () => {
    for (const release of releases.splice(0)) await release();
  });

  test('a key that could not be released with its failure is released soon after', async () => {
    await database.db.query(`
      create function refuse() returns trigger language plpgsql as $$ begin raise exception 'refused'; end $$;
      create trigger refuse before update on idempotency_keys for each row when (new.holder is null) execute function refuse();
    `);
    const broken = (at: ApiProcess) =>
      at.rest('POST', '/v1/notes', { body: { note_text: 'broken' }, headers: { 'idempotency-key': 'd3' } });
    const other = await startSampleApi(database.url);
    releases.push(() => other.stop());
    expect((await broken(api)).status).toBe(500);
    expect((await broken(other)).status).toBe(409);
    // The process itself knows that nobody works.
    expect((await broken(api)).status).toBe(500);
    await database.db.query('drop trigger refuse on idempotency_keys');
    const deadline = Date.now() + PATIENCE_MS;
    let status = 409;
    while (status === 409 && Date.now() < deadline) ({ status } = await broken(other));
    expect(status).toBe(500);
  });
});
