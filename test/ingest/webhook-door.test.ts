import { v7 as uuid } from 'uuid';
import { subscribeChannel } from '../../services/connections/vendor-connections';
import { connectionStatusesOf } from '../../views/connections/connection-statuses';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { openWebhookDoor } from '../../ingest/runtime/webhook/door';
import type { ConnectionTokens } from '../../services/connections/connection-tokens';
import { SubscriptionsRefused } from '../../vendors/kick/port';
import { testDatabase, type TestDatabase } from '../support/database';
import { silentLog } from '../support/log';

let t: TestDatabase;
const account_id = uuid();
const [kick, twitch] = [uuid(), uuid()];

beforeAll(async () => {
  t = await testDatabase();
  await t.db.query(
    `insert into channel_connections (id, account_id, platform, platform_channel_id, connected_at)
     values ($1, $3, 'kick', '7', now() - interval '3 h'), ($2, $3, 'twitch', '7', now() - interval '3 h')`,
    [kick, twitch, account_id],
  );
  await t.db.query(
    `insert into connection_grants (connection_id, account_id, kind, platform, platform_user_id, app, client_id, scopes, key_id, sealed)
     values ($1, $2, 'channel', 'kick', '7', 'system', 'app', '{}', gen_random_uuid(), '')`,
    [kick, account_id],
  );
});
afterAll(() => t?.drop());

const details = async () => {
  const statuses = await connectionStatusesOf(t.db, { account_id, user_id: uuid() });
  return Object.fromEntries(statuses.map(({ platform, detail }) => [platform, detail]));
};

test('an hour without webhooks is found by one of the processes that come back, and stands in the status', async () => {
  let away = false;
  const storable = async () => {
    if (away) throw new Error('the broker is away');
  };
  const metrics = createPrometheusMetrics({});
  const doors = [1, 2, 3].map(() =>
    openWebhookDoor({ db: t.db, storable, log: silentLog, metrics, every_ms: 3_600_000 }),
  );
  try {
    for (const door of doors) expect(await door.note()).toBeNull();
    expect(await details()).toMatchObject({ kick: null, twitch: null });
    await t.db.query(`update webhook_door set open_at = now() - interval '1 hour'`);
    away = true;
    for (const door of doors) await expect(door.note()).rejects.toThrow('away');
    away = false;
    const found = await Promise.all(doors.map((door) => door.note()));
    expect(found.filter((gap) => gap !== null)).toHaveLength(1);
    expect(await details()).toMatchObject({ kick: expect.stringContaining('may be missing'), twitch: null });
    expect(await metrics.render()).toContain('lumio_webhook_gaps_total{vendor="kick"} 1');
    // One that was connected since has missed nothing.
    await t.db.query(`update channel_connections set connected_at = now() where platform = 'kick'`);
    expect(await details()).toMatchObject({ kick: null });
  } finally {
    for (const door of doors) door.close();
  }
});

test('a channel beyond the subscriptions of its app says so, until Kick takes them', async () => {
  const channel = { connection_id: kick, platform_channel_id: '7', client_id: 'app' };
  const tokens = { token: async () => 'token' } as unknown as ConnectionTokens;
  const full = async () => {
    throw new SubscriptionsRefused(['channel.followed'], 'too many subscriptions');
  };
  const end = async () => undefined;
  await expect(subscribeChannel({ db: t.db, tokens, kick: { ensure: full, end } }, channel)).rejects.toThrow(
    'too many',
  );
  expect(await details()).toMatchObject({ kick: 'Kick refuses channel.followed: too many subscriptions' });
  await subscribeChannel({ db: t.db, tokens, kick: { ensure: async () => undefined, end } }, channel);
  expect(await details()).toMatchObject({ kick: null });
});

test('what a connection that is held lacks, or has missed of late, is its detail', async () => {
  await t.db.query(
    `insert into adapter_links (link, vendor, connection_id, account_id, token, holder, status, detail, status_at)
     values ('twitch:x', 'twitch', $1, $2, 1, gen_random_uuid(), 'degraded', 'Twitch refuses channel.ban', now())`,
    [twitch, account_id],
  );
  expect(await details()).toMatchObject({ twitch: 'Twitch refuses channel.ban' });
  await t.db.query(`update adapter_links set status = 'connected', missed_to = now(), missed_detail = 'a gap'`);
  expect(await details()).toMatchObject({ twitch: 'a gap' });
  await t.db.query(`update adapter_links set missed_to = now() - interval '2 days'`);
  expect(await details()).toMatchObject({ twitch: null });
});
