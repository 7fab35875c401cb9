import { Client, type ServerMessage } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { eventually, VendorCloud } from '../support/vendor-cloud';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.dispose());

const stored = (client: Client, channel: string): ServerMessage[] =>
  client.messages.filter((message) => message.channel === channel && message.data !== undefined);

test('a node killed while it publishes: who resumes has exactly what was committed, or is told that it has not', async () => {
  const { credentials, database } = server;
  const { db } = database!;
  const channel = `events:${credentials.account_id}`;
  const committed = () =>
    db.query<{ seq: number; id: string }>(
      `select seq, data::json->>'id' as id from outbox where channel = $1 order by seq`,
      [channel],
    );
  const client = await Client.open(server.ws_url, credentials.access_token);
  await client.subscribe(channel);

  const vendors = new VendorCloud(server.base_url, credentials);
  let acked = 0;
  let gone = false;
  const publishing = [1, 2, 3, 4].map(async (lane) => {
    for (let n = 0; !gone; n += 1) {
      const answer = await vendors.kickFollow(n, `lane-${lane}-${n}`).catch(() => undefined);
      if (answer?.status === 200) acked += 1;
    }
  });
  await client.until(() => client.events(channel).length > 60, 'some messages');
  await server.kill();
  gone = true;
  await Promise.all(publishing);
  await client.closed();

  const again = await server.restart();
  const before = stored(client, channel);
  const resumed = await Client.open(again.ws_url, credentials.access_token);
  expect(await resumed.subscribe(channel, before.at(-1)!.id)).toMatchObject({ type: 'subscribed', recovered: true });
  await eventually(async () => ((await committed()).length >= acked ? true : undefined), 'all that was acknowledged');
  const rows = await committed();
  expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, n) => n + 1));
  await resumed.until(() => before.length + stored(resumed, channel).length >= rows.length, 'what was missed');
  const got = [...before, ...stored(resumed, channel)];
  expect(got.map(({ data }) => data!.id)).toEqual(rows.map(({ id }) => id));

  // Beyond the resume window nothing is promised, and that is said.
  await db.query(`update outbox set created_at = created_at - interval '1 hour' where channel = $1`, [channel]);
  await again.kill();
  const last = await again.restart();
  const late = await Client.open(last.ws_url, credentials.access_token);
  expect(await late.subscribe(channel, before[0]!.id)).toMatchObject({ type: 'subscribed', recovered: false });
  for (const one of [client, resumed, late]) one.end();
  await last.stop();
}, 120_000);
