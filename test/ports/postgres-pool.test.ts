import { createServer, type AddressInfo } from 'node:net';
import { toFailure } from '../../api/http/answers/errors';
import { migrate } from '../../engines/postgres/migrate';
import { PostgresDatabase } from '../../engines/postgres/pool';
import { ProcessSession } from '../../engines/postgres/process-session';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { testDatabase, type TestDatabase } from '../support/database';
import { silenceableLink } from '../support/link';
import { until } from '../support/projections';
import { timeLimit } from '../support/patience';

/** A pool whose waits are bounded: a statement that takes too long, and a server that vanishes without a word. */
describe('a bounded pool', () => {
  let database: TestDatabase;
  let link: Awaited<ReturnType<typeof silenceableLink>>;
  let pool: PostgresDatabase;
  beforeAll(async () => {
    database = await testDatabase(2);
  });
  afterAll(() => database.drop());
  beforeEach(async () => {
    link = await silenceableLink(database.url);
    pool = new PostgresDatabase({
      url: link.url,
      name: 'bounded',
      size: 5,
      statement_timeout_ms: 500,
      query_timeout_ms: 1_000,
    });
  });
  afterEach(async () => {
    await pool.close();
    link.close();
  });

  async function failure(work: Promise<unknown>): Promise<{ error: Error & { code?: string }; ms: number }> {
    const started = Date.now();
    const error = await work.then(
      () => new Error('it did not fail'),
      (thrown: Error) => thrown,
    );
    return { error, ms: Date.now() - started };
  }
  /** Connections that stand idle in the pool. */
  async function warm(count: number): Promise<void> {
    await Promise.all(Array.from({ length: count }, () => pool.query('select pg_sleep(0.1)')));
    expect(pool.stats()).toMatchObject({ connections: count, idle: count });
  }

  test('the server cancels a statement that takes too long, alone and in a transaction; the connection stays', async () => {
    await warm(1);
    for (const work of [
      () => pool.query('select pg_sleep(20)'),
      () => pool.transaction((tx) => tx.query('select pg_sleep(20)')),
    ]) {
      const { error, ms } = await failure(work());
      expect(error.code).toBe('57014');
      expect(toFailure(error)).toMatchObject({ code: 'DATABASE_ERROR', status: 503, retry_after_seconds: 5 });
      expect(ms).toBeLessThan(timeLimit(15_000));
    }
    expect(pool.stats()).toMatchObject({ connections: 1, idle: 1 });
  });

  test.each([
    ['a query', (db: PostgresDatabase) => db.query('select 1')],
    ['a transaction', (db: PostgresDatabase) => db.transaction((tx) => tx.query('select 1'))],
  ])('a server that vanished under %s is given up in time, and so are the other connections to it', async (_, work) => {
    await warm(4);
    link.silence();
    const { error, ms } = await failure(work(pool));
    expect(error.message).toBe('Query read timeout');
    expect(toFailure(error)).toMatchObject({ code: 'DATABASE_ERROR', status: 503, retry_after_seconds: 5 });
    expect(ms).toBeLessThan(timeLimit(15_000));
    // The other three are asked at once and dropped; nobody else has to wait for each of them.
    await until(() => pool.stats().connections === 0);
    // Who waited for one of them would be told so.
    await Promise.all(Array.from({ length: 5 }, () => work(pool)));
  });

  test('a server that vanishes in the middle of a transaction, and one that takes no connection', async () => {
    const middle = await failure(
      pool.transaction(async (tx) => {
        await tx.query('select 1');
        link.silence();
        await tx.query('select 1');
      }),
    );
    expect(middle.error.message).toBe('Query read timeout');
    expect(middle.ms).toBeLessThan(timeLimit(15_000));
    const silent = createServer();
    await new Promise<void>((listening) => silent.listen(0, '127.0.0.1', listening));
    const { port } = silent.address() as AddressInfo;
    const url = `postgres://127.0.0.1:${port}/x`;
    const nowhere = new PostgresDatabase({ url, name: 'nowhere', query_timeout_ms: 300 });
    const connecting = await failure(nowhere.query('select 1'));
    expect(toFailure(connecting.error)).toMatchObject({ code: 'DATABASE_ERROR', status: 503 });
    expect(connecting.ms).toBeLessThan(timeLimit(15_000));
    await nowhere.close();
    silent.close();
  });

  test.each([
    ['a query', (work: string) => pool.query(work)],
    ['a transaction', (work: string) => pool.transaction((tx) => tx.query(work))],
  ])('a server that became a standby under %s: told as passing, its connections are not used again', async (_, run) => {
    await warm(3);
    // What a promotion elsewhere makes of the old server's sessions.
    const sessions = await Promise.all(Array.from({ length: 3 }, () => pool.pool.connect()));
    for (const session of sessions) await session.query('set default_transaction_read_only = on');
    for (const session of sessions) session.release();
    const write = 'create table if not exists written (n int)';
    const { error } = await failure(run(write));
    expect(error.code).toBe('25006');
    expect(toFailure(error)).toMatchObject({ code: 'DATABASE_ERROR', status: 503, retry_after_seconds: 5 });
    // The one that said so is closed, and the idle ones are asked.
    await until(() => pool.stats().connections === 0);
    await run(write);
  });

  test('a transaction that waits too long for its next statement is ended by the server, and passes', async () => {
    expect(await pool.query(`select current_setting('idle_in_transaction_session_timeout') as idle`)).toEqual([
      { idle: '30s' },
    ]);
    const { error } = await failure(
      pool.transaction(async (tx) => {
        await tx.query(`set local idle_in_transaction_session_timeout = 50`);
        await new Promise((wait) => setTimeout(wait, 500));
        await tx.query('select 1');
      }),
    );
    expect(toFailure(error)).toMatchObject({ code: 'DATABASE_ERROR', status: 503, retry_after_seconds: 5 });
    expect(await pool.query('select 1 as one')).toEqual([{ one: 1 }]);
  });

  test.each([
    ['25006', 503],
    ['25P03', 503],
    ['25P04', 503],
    ['25P02', 500],
    ['25001', 500],
    ['25000', 500],
  ])('of class 25 %s is answered with %i', (code, status) => {
    expect(toFailure(Object.assign(new Error(code), { code, severity: 'ERROR' }))).toMatchObject({ status });
  });

  test('without a descriptor left for the connection, it is for trying again', () => {
    const error = Object.assign(new Error('connect EMFILE /x'), { code: 'EMFILE', syscall: 'connect', errno: -24 });
    expect(toFailure(error)).toMatchObject({ code: 'DATABASE_ERROR', status: 503, retry_after_seconds: 5 });
  });

  test('what a statement itself did wrong is not for trying again', async () => {
    const { error } = await failure(pool.query('select * from no_such_table'));
    expect(toFailure(error)).toMatchObject({ code: 'DATABASE_ERROR', status: 500, retry_after_seconds: undefined });
  });
});

describe('what a connection asks of the server as it begins', () => {
  const keepalive = '-c tcp_keepalives_idle=10 -c tcp_keepalives_interval=5 -c tcp_keepalives_count=3';
  const idle = '-c idle_in_transaction_session_timeout=30000';

  /** The first packet of a connection to `url`, as text. */
  async function firstPacket(work: (url: string, came: () => Promise<unknown>) => Promise<unknown>): Promise<string> {
    let packet = '';
    const came = () => until(() => packet !== '');
    const server = createServer((socket) =>
      socket.once('data', (data) => {
        packet = data.toString('latin1');
        socket.destroy();
      }),
    );
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    const { port } = server.address() as AddressInfo;
    await work(`postgres://127.0.0.1:${port}/x`, came).catch(() => undefined); // no server
    await came();
    server.close();
    return packet;
  }
  const pooled = async (url: string, work: (db: PostgresDatabase) => Promise<unknown>) => {
    const db = new PostgresDatabase({ url, name: 'x' });
    await work(db).finally(() => db.close());
  };

  test.each<[string, (url: string, came: () => Promise<unknown>) => Promise<unknown>, string[]]>([
    ['a pool', (url) => pooled(url, (db) => db.query('select 1')), [keepalive, idle]],
    ['a migration', (url) => migrate(url), [keepalive]],
    ['a lock', (url) => pooled(url, (db) => db.hold(1, async () => undefined)), [keepalive]],
    [
      'the session of a process',
      async (url, came) => {
        const session = new ProcessSession({ connectionString: url }, undefined);
        void session.ready();
        await came();
        await session.close();
      },
      [keepalive],
    ],
    [
      'a link for wake-ups',
      async (url, came) => {
        const wakeups = createPostgresWakeups({ url });
        await came();
        await wakeups.close();
      },
      [keepalive],
    ],
  ])('%s', async (_, work, wanted) => {
    const packet = await firstPacket(work);
    for (const setting of wanted) expect(packet).toContain(setting);
  });
});

test('a kept session that is closed leaves no timer that keeps the process', async () => {
  const database = await testDatabase(1);
  const timers = () => process.getActiveResourcesInfo().filter((kind) => kind === 'Timeout').length;
  try {
    const before = timers();
    const session = new ProcessSession({ connectionString: database.url }, undefined);
    await session.ready();
    await session.close();
    expect(timers()).toBe(before);
  } finally {
    await database.drop();
  }
});
