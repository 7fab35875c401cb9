import { randomBytes } from 'node:crypto';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type TestDatabase, testDatabase } from '../../support/database';
import { slowness } from '../../support/patience';
import { type DevCredentials, settingsOf, spawnLumio } from '../../support/server';
import { ApiClient, eventually } from '../../support/vendor-cloud';

const STOPS_WITHIN_MS = 10_000;

describe('lumio demo', () => {
  const data_dir = mkdtempSync(join(tmpdir(), 'lumio-demo-'));
  const keys = `test:${randomBytes(32).toString('base64')}`;
  let database: TestDatabase;
  const addresses = new Set<string>();

  beforeAll(async () => {
    database = await testDatabase(2);
  });
  afterAll(async () => {
    await database?.drop();
    rmSync(data_dir, { recursive: true, force: true });
  });

  /** A message appears once, and a ban is an entry of the log where the platform takes it. */
  async function sayAndBan(api: ApiClient, platform: string): Promise<void> {
    const message = `hello ${platform}`;
    const sent = await api.send('POST', '/v1/chat/send', { platform, message });
    expect([platform, sent.body.data ?? sent.body]).toMatchObject([platform, { sent: true }]);
    const rows = () =>
      database.db.query(
        'select platform_user_id from platform_chat_messages m left join platform_users u ' +
          'using (account_id, person_key) where m.platform = $1 and message = $2',
        [platform, message],
      );
    await eventually(async () => ((await rows()).length > 0 ? true : undefined), `the message on ${platform}`);
    expect(await rows()).toHaveLength(1);
    if (platform === 'kick') return;
    const [known] = await database.db.query(
      // Trovo bans by name, and knows no other letters.
      `select platform_user_id from platform_users where platform = $1 and username ~ '^[A-Za-z0-9_]+$'
       order by first_seen_at limit 1`,
      [platform],
    );
    const user_id = known!['platform_user_id'];
    const ban = await api.send('POST', '/v1/chat/moderate', { action: 'BAN', platform, user_id });
    expect([platform, ban.body.data ?? ban.body]).toMatchObject([platform, { success: true }]);
    const entry = `select 1 from moderation_log where platform = $1 and content ->> 'target_user_id' = $2`;
    await eventually(
      async () => ((await database.db.query(entry, [platform, user_id])).length > 0 ? true : undefined),
      `the ban on ${platform}`,
    );
  }

  test.each([
    ['plays a stream on all platforms', [], [], ['kick']],
    [
      'plays it through every adapter',
      ['--vendors'],
      ['discord', 'spotify', 'streamelements'],
      ['kick', 'trovo', 'twitch', 'youtube'],
    ],
  ])('%s, tells how it goes, and ends by SIGINT', async (_name, options, others, chats) => {
    const child = spawnLumio(['demo', '--rate', '20', ...options], {
      ...settingsOf(data_dir),
      LUMIO_DATABASE__URL: database.url,
      LUMIO_SECRETS__KEYS: keys,
    });
    let output = '';
    child.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    child.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    const ended = new Promise<number | null>((done) => child.once('close', done));
    try {
      await eventually(async () => (output.includes('lumio ready at http') ? true : undefined), 'the server');
      const overlay = await eventually(async () => /overlay at (http\S+)\n/.exec(output)?.[1], 'the overlay');
      expect(overlay).toMatch(/\/overlay\/[\w-]{12}#token=lm_overlay_[0-9a-f]{64}$/);
      addresses.add(new URL(overlay).hash);
      // The second start has the overlay of the first.
      expect(addresses.size).toBe(1);
      const path = join(data_dir, 'dev-credentials.json');
      const { base_url, access_token } = JSON.parse(readFileSync(path, 'utf8')) as DevCredentials;
      const api = new ApiClient(base_url, access_token);
      const platforms = ['kick', 'shopify', 'trovo', 'twitch', 'youtube', ...others];
      await eventually(async () => {
        // Asked of the table, since asking a page again and again is limited.
        const rows = await database.db.query('select distinct platform from platform_event_logs');
        const seen = new Set(rows.map(({ platform }) => platform as string));
        return platforms.every((platform) => seen.has(platform)) ? true : undefined;
      }, 'events of every platform');
      expect((await api.allEvents()).length).toBeGreaterThan(platforms.length);
      await eventually(async () => {
        const rows = await database.db.query(
          `select distinct platform from platform_chat_messages
           where has_emote and content #>> '{badges,0,kind}' is not null`,
        );
        const seen = new Set(rows.map(({ platform }) => platform as string));
        return chats.every((platform) => seen.has(platform)) ? true : undefined;
      }, 'chats with badges and emotes');
      // The logins of the demo's owner are at the stand-ins.
      for (const platform of others.length > 0 ? chats : []) await sayAndBan(api, platform);
      const sampled = async () =>
        (await database.db.query('select 1 from broadcast_figures limit 1')).length || undefined;
      await eventually(sampled, 'how many watch');
      const status = await eventually(async () => /^demo {2}.*$/m.exec(output)?.[0], `a status line in: ${output}`);
      expect(status).toMatch(/^demo {2}\w+ +[\d.]+\/s {2}accepted [1-9]\d* {2}refused 0 {2}lost 0$/);

      const asked = Date.now();
      child.kill('SIGINT');
      expect(await ended).toBe(0);
      expect(Date.now() - asked).toBeLessThan(STOPS_WITHIN_MS * slowness());
      expect(existsSync(join(data_dir, 'lumio.lock'))).toBe(false);
      expect(output).not.toMatch(/"level":"(error|fatal)"/);
    } finally {
      if (child.exitCode === null && child.signalCode === null) child.kill('SIGKILL');
      await ended;
    }
  });
});
