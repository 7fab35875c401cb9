import pg from 'pg';
import { LOCKS } from '../../../engines/locks/port';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

/**
 * A client that never got its answer sends its command again, under the same Idempotency-Key, to what has been started
 * since.
 */
describe('killed between an append and its answer', () => {
  let server: TestServer;
  beforeAll(async () => {
    // Read models are held here: an answer waits for them until its server is killed.
    server = await startServer();
  });
  afterAll(() => server?.dispose());

  test('the retry is answered at once by what was stored, and nothing is stored twice', async () => {
    const { db, url } = server.database!;
    const { access_token } = server.credentials;
    const made = await new ApiClient(server.base_url, access_token).send('POST', '/v1/api-keys', {
      label: 'Bot',
      permissions: ['events:read'],
      expires_at: null,
    });
    const { id } = made.body.data as { id: string };
    const rename = (base_url: string) =>
      new ApiClient(base_url, access_token).send(
        'PATCH',
        `/v1/api-keys/${id}`,
        { label: 'Renamed' },
        { 'idempotency-key': 'rename-1' },
      );
    const renames = () => db.query("select 1 from domain_events where type = 'api_key:renamed'");

    // The answer waits for a read model that cannot move.
    const blocker = new pg.Client({ connectionString: url });
    await blocker.connect();
    await blocker.query("begin; select 1 from checkpoints where projection = 'api-keys' for update");
    const lost = rename(server.base_url).then(
      () => 'answered',
      () => 'cut',
    );
    await eventually(async () => ((await renames()).length > 0 ? true : undefined), 'the append');
    await server.kill();
    expect(await lost).toBe('cut');
    await blocker.end();

    server = await server.restart();
    const started = Date.now();
    const answer = await eventually(async () => {
      const again = await rename(server.base_url);
      return again.status === 409 ? undefined : again;
    }, 'an answer');
    expect(answer.status).toBe(200);
    expect(answer.body.data.label).toBe('Renamed');
    // The key itself would be held for a minute.
    expect(Date.now() - started).toBeLessThan(30_000);
    expect(await renames()).toHaveLength(1);
    const replayed = await rename(server.base_url);
    expect(replayed.body).toEqual(answer.body);
  });

  const asOwner = () => new ApiClient(server.base_url, server.credentials.access_token);
  /** The read model stands still until it is released. */
  async function holdReadModel(projection = 'api-keys'): Promise<() => Promise<void>> {
    const blocker = new pg.Client({ connectionString: server.database!.url });
    await blocker.connect();
    await blocker.query('begin');
    await blocker.query('select 1 from checkpoints where projection = $1 for update', [projection]);
    return () => blocker.end();
  }
  const lag = (answer: { headers: Headers }) => answer.headers.get('x-lumio-read-model');
  async function createKey(): Promise<{ id: string; key: string }> {
    const made = await asOwner().send('POST', '/v1/api-keys', { label: 'Bot', permissions: ['events:read'] });
    expect(made.status).toBe(201);
    return made.body.data;
  }

  test('a deletion that was stored and never answered is answered as the first would have been, each time', async () => {
    const { db } = server.database!;
    const { id, key } = await createKey();
    const remove = () =>
      asOwner().send('DELETE', `/v1/api-keys/${id}`, undefined, { 'idempotency-key': `remove-${id}` });
    const revocations = () =>
      db.query("select 1 from domain_events where type = 'api_key:revoked' and data->>'key_id' = $1", [id]);
    const release = await holdReadModel();
    const lost = remove().then(
      () => 'answered',
      () => 'cut',
    );
    await eventually(async () => ((await revocations()).length > 0 ? true : undefined), 'the append');
    await server.kill();
    expect(await lost).toBe('cut');
    await release();
    server = await server.restart();
    const answer = await eventually(async () => {
      const again = await remove();
      return again.status === 409 ? undefined : again;
    }, 'an answer');
    expect([answer.status, answer.headers.get('idempotency-replayed')]).toEqual([204, null]);
    for (let n = 0; n < 2; n += 1) {
      const again = await remove();
      expect([again.status, again.headers.get('idempotency-replayed')]).toEqual([204, 'true']);
    }
    expect(await revocations()).toHaveLength(1);
    expect((await new ApiClient(server.base_url, key).get('/v1/tokens/me')).status).toBe(401);
    // Another request is no retry: the key is gone.
    expect((await asOwner().send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(404);
  });

  const alive = async (key: string) => (await new ApiClient(server.base_url, key).get('/v1/tokens/me')).status;
  async function killedIn(call: () => Promise<unknown>, reached: () => Promise<boolean>): Promise<void> {
    const lost = call().then(
      () => 'answered',
      () => 'cut',
    );
    await eventually(async () => ((await reached()) ? true : undefined), 'the place to be killed at');
    await server.kill();
    expect(await lost).toBe('cut');
  }

  test('a key whose removal is stored and parked is dead, although nobody repeats the call that was killed', async () => {
    const { db } = server.database!;
    const { id, key } = await createKey();
    expect(await alive(key)).toBe(200);
    const events = () =>
      db.query("select 1 from domain_events where type = 'api_key:revoked' and data->>'key_id' = $1", [id]);
    await db.query(`
      create function keep() returns trigger language plpgsql as $$
        begin raise exception 'kept' using errcode = 'check_violation'; end $$;
      create trigger keep before delete on api_keys for each row execute function keep();
    `);
    const release = await holdReadModel();
    await killedIn(
      () => asOwner().send('DELETE', `/v1/api-keys/${id}`, undefined),
      async () => (await events()).length > 0,
    );
    await release();
    server = await server.restart();
    await eventually(
      async () =>
        (await db.query("select 1 from dead_letters where status = 'parked'")).length > 0 ? true : undefined,
      'the parked removal',
    );
    expect([(await db.query('select 1 from api_keys where id = $1', [id])).length, await alive(key)]).toEqual([1, 401]);
    expect((await asOwner().send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(404);
    await db.query('drop trigger keep on api_keys');
  });

  test('a key whose removal was killed before it was stored is dead, listed, and removed by the next call', async () => {
    const { db, url } = server.database!;
    const { id, key } = await createKey();
    const listed = async () =>
      (await asOwner().get('/v1/api-keys')).body.data.filter((one: { id: string }) => one.id === id).length;
    const blocker = new pg.Client({ connectionString: url });
    await blocker.connect();
    await blocker.query('select pg_advisory_lock($1)', [LOCKS.event_order]);
    await killedIn(
      () => asOwner().send('DELETE', `/v1/api-keys/${id}`, undefined),
      async () => (await db.query('select 1 from revocations where credential_id = $1', [id])).length > 0,
    );
    // The database would go on with a statement whose client is gone.
    await db.query(
      "select pg_terminate_backend(pid, 10000) from pg_locks where locktype = 'advisory' and not granted and objid = $1",
      [LOCKS.event_order],
    );
    await blocker.end();
    server = await server.restart();
    expect([await alive(key), await listed()]).toEqual([401, 1]);
    expect((await asOwner().send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(204);
    await eventually(async () => ((await listed()) === 0 ? true : undefined), 'the removal');
  });

  test('nobody ends a key that is not theirs by failing to remove it', async () => {
    const { id, key } = await createKey();
    const other = new ApiClient(server.base_url, server.credentials.other.access_token);
    expect((await other.send('DELETE', `/v1/api-keys/${id}`, undefined)).status).toBe(404);
    expect(await alive(key)).toBe(200);
  });

  describe('whose answers wait no longer than usual', () => {
    beforeAll(async () => {
      await server.stop();
      server = await server.restart({ LUMIO_READ_MODELS__WAIT: '2s' });
    });

    test('who repeats a call whose answer could not wait reads what it wrote', async () => {
      const { id } = await createKey();
      const rename = () =>
        asOwner().send('PATCH', `/v1/api-keys/${id}`, { label: 'Seen' }, { 'idempotency-key': `rename-${id}` });
      const shown = async () =>
        (await asOwner().get('/v1/api-keys')).body.data.find((one: { id: string }) => one.id === id).label;
      const release = await holdReadModel();
      const first = await rename();
      expect([first.status, lag(first), await shown()]).toEqual([200, 'behind', 'Bot']);
      const still = await rename();
      expect([still.status, lag(still), still.headers.get('idempotency-replayed')]).toEqual([200, 'behind', 'true']);
      await release();
      const again = await eventually(async () => {
        const answer = await rename();
        return lag(answer) === null ? answer : undefined;
      }, 'a read model that is not behind');
      expect([again.body, await shown()]).toEqual([first.body, 'Seen']);
    });

    test('who repeats an emit whose answer could not wait reads the event, and says so on both protocols', async () => {
      const emit = () =>
        asOwner().send('POST', '/v1/events/emit', { event_type: 'test:late' }, { 'idempotency-key': 'emit-late' });
      const logged = async () => (await asOwner().get('/v1/events?types=test:late')).body.data.length;
      // The log of events has its checkpoints once it has seen a record.
      expect((await asOwner().send('POST', '/v1/events/emit', { event_type: 'test:first' })).status).toBe(200);
      const release = await holdReadModel('event-log');
      const first = await emit();
      expect([first.status, lag(first), await logged()]).toEqual([200, 'behind', 0]);
      const by_graphql = await asOwner().send('POST', '/v1/gql', {
        query: 'mutation { emitEvent(input: { eventType: "test:other" }) { success } }',
      });
      expect([by_graphql.body.data, lag(by_graphql)]).toEqual([{ emitEvent: { success: true } }, 'behind']);
      const still = await emit();
      expect([lag(still), still.headers.get('idempotency-replayed')]).toEqual(['behind', 'true']);
      await release();
      const again = await eventually(async () => {
        const answer = await emit();
        return lag(answer) === null ? answer : undefined;
      }, 'a read model that is not behind');
      expect([again.body, again.headers.get('idempotency-replayed'), await logged()]).toEqual([first.body, 'true', 1]);
    });
  });
});
