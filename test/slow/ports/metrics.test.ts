import { ORDINARY_ROLE } from '../../support/database';
import { Client } from '../../support/realtime';
import { startServer, type TestServer } from '../../support/server';
import { eventually } from '../../support/vendor-cloud';

/** Sums the samples of a series whose labels contain all these. */
function valueOf(exposition: string, name: string, labels: Record<string, string> = {}): number | undefined {
  const wanted = Object.entries(labels).map(([label, value]) => `${label}="${value}"`);
  const lines = exposition
    .split('\n')
    .filter((line) => line.startsWith(`${name}{`) && wanted.every((text) => line.includes(text)));
  if (lines.length === 0) return undefined;
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(' ') + 1)), 0);
}

describe('metrics', () => {
  let server: TestServer;
  let socket: Client;
  let scrape: () => Promise<string>;

  beforeAll(async () => {
    server = await startServer();
    scrape = async () => (await fetch(server.metrics_url)).text();
    socket = await Client.open(server.ws_url, server.credentials.access_token);
    await socket.subscribe(`events:${server.credentials.account_id}`);
  });
  afterAll(async () => {
    socket?.end();
    await server?.dispose();
  });

  test('a session that idles in a transaction shows, and passes', async () => {
    const client = await server.database!.db.pool.connect();
    try {
      await client.query('begin');
      await client.query('select 1');
      await eventually(
        async () => (valueOf(await scrape(), 'lumio_db_oldest_idle_in_transaction_seconds') ?? 0) > 1 || undefined,
        'the idle transaction',
      );
      expect(valueOf(await scrape(), 'lumio_db_oldest_transaction_seconds')).toBeGreaterThan(1);
    } finally {
      await client.query('rollback');
      client.release();
    }
    await eventually(
      async () => valueOf(await scrape(), 'lumio_db_oldest_idle_in_transaction_seconds') === 0 || undefined,
      'its end',
    );
  });

  test("another role's idle transaction is hidden from an ordinary role, which says so, and sees it with the right", async () => {
    const { asAdmin, adminClient } = server.database!;
    const client = await adminClient();
    const value = async (name: string) => valueOf(await scrape(), name);
    try {
      await client.query('begin; select 1');
      await eventually(async () => (await value('lumio_db_hidden_sessions')) === 1 || undefined, 'the hidden session');
      expect(await value('lumio_db_oldest_idle_in_transaction_seconds')).toBe(0);
      await asAdmin(`grant pg_read_all_stats to ${ORDINARY_ROLE}`);
      await eventually(
        async () => ((await value('lumio_db_oldest_idle_in_transaction_seconds')) ?? 0) > 0 || undefined,
        'the idle transaction',
      );
      expect(await value('lumio_db_hidden_sessions')).toBe(0);
    } finally {
      await asAdmin(`revoke pg_read_all_stats from ${ORDINARY_ROLE}`);
      await client.end();
    }
  });
});
