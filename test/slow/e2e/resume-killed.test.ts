import { dose } from '../../faults/support/dose';
import { Client, type ServerMessage } from '../../support/realtime';
import { startServer, type TestServer } from '../../support/server';
import { eventually, VendorCloud } from '../../support/vendor-cloud';

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(() => server.dispose());

const seqOf = (id: string): number => Number(id.slice(id.lastIndexOf('-') + 1));
const stored = (client: Client, channel: string): ServerMessage[] =>
  client.messages.filter((message) => message.channel === channel && message.data !== undefined);

/** Kills; the full dose is `LUMIO_FAULT_DOSE=full npm run test:slow -- test/slow/e2e/resume-killed.test.ts`. */
const KILLS = dose(1, 20);

test(
  `a node killed while it publishes (${KILLS}): who resumes has exactly what was committed, or is told that it has not`,
  async () => {
    const { credentials, database } = server;
    const { db } = database!;
    const channel = `events:${credentials.account_id}`;
    const committed = (after: number) =>
      db.query<{ seq: number; id: string }>(
        `select seq, data::json->>'id' as id from outbox where channel = $1 and seq > $2 order by seq`,
        [channel, after],
      );
    const open = () => Client.open(server.ws_url, credentials.access_token);
    let first_id: string | undefined;
    let acked = 0;

    for (let kill = 0; kill < KILLS; kill += 1) {
      const client = await open();
      const subscribed = await client.subscribe(channel);
      const joined_at = seqOf(subscribed.id!);

      const vendors = new VendorCloud(server.base_url, credentials);
      let gone = false;
      const publishing = [1, 2, 3, 4].map(async (lane) => {
        for (let n = 0; !gone; n += 1) {
          const answer = await vendors.kickFollow(n, `kill-${kill}-lane-${lane}-${n}`).catch(() => undefined);
          if (answer?.status === 200) acked += 1;
        }
      });
      await client.until(() => client.events(channel).length > 60, 'some messages');
      await server.kill();
      gone = true;
      await Promise.all(publishing);
      await client.closed();

      server = await server.restart();
      const before = stored(client, channel);
      first_id ??= before[0]!.id!;
      const resumed = await open();
      const answer = await resumed.subscribe(channel, before.at(-1)!.id);
      expect(answer).toMatchObject({ type: 'subscribed', recovered: true });
      const all_acked = async () => ((await committed(0)).length >= acked ? true : undefined);
      await eventually(all_acked, 'all that was acknowledged');
      const rows = await committed(joined_at);
      expect(rows.map(({ seq }) => seq)).toEqual(rows.map((_, n) => joined_at + n + 1));
      await resumed.until(() => before.length + stored(resumed, channel).length >= rows.length, 'what was missed');
      // What was stored without its answer may follow.
      const got = [...before, ...stored(resumed, channel)].slice(0, rows.length);
      expect(got.map(({ data }) => data!.id)).toEqual(rows.map(({ id }) => id));
      for (const one of [client, resumed]) one.end();
    }

    // Beyond the resume window nothing is promised, and that is said.
    await db.query(`update outbox set created_at = created_at - interval '1 hour' where channel = $1`, [channel]);
    await server.kill();
    server = await server.restart();
    const late = await open();
    expect(await late.subscribe(channel, first_id)).toMatchObject({ type: 'subscribed', recovered: false });
    late.end();
  },
  dose(180_000, 1_200_000),
);
