import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createProfileBreakers, PlatformPaused } from '../../services/chat/profile-breakers';
import { createHttpClients } from '../../vendors/http/client';
import { HttpFailed } from '../../vendors/http/port';
import { trovoChat } from '../../vendors/trovo/chat';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { FakeChatCloud } from '../vendors/chat-cloud';

const WEB = 'https://app.example';

let cloud: FakeChatCloud;
let server: TestServer;
let owner: ApiClient;
let operator: ApiClient;
let vendors: VendorCloud;
let broadcaster: number;
let said = 0;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({ env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  operator = new ApiClient(server.base_url, server.credentials.system_key);
  vendors = new VendorCloud(server.base_url, server.credentials);
  const { body } = await owner.get('/v1/connections/channel');
  broadcaster = Number(body.data.find((one: any) => one.platform === 'kick').platform_channel_id);
  // A channel connection with tokens, for the profile look-ups.
  const begun = await owner.send('POST', '/v1/connections/oauth/kick/start', { kind: 'channel', return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, String(broadcaster));
  expect((await owner.send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
  const [subscribed] = await eventually(
    async () => (cloud.subscriptions.size > 0 ? [...cloud.subscriptions.keys()] : undefined),
    'the subscriptions at Kick',
  );
  vendors.kick_subscription = subscribed;
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

const person = (id: number) => ({ user_id: id, username: `Name ${id}`, channel_slug: `name-${id}` });
async function say(id: number, content: string, more: object = {}): Promise<void> {
  said += 1;
  const message = {
    message_id: `m-${said}`,
    broadcaster: person(broadcaster),
    sender: person(id),
    content,
    emotes: null,
    created_at: new Date().toISOString(),
    ...more,
  };
  expect((await vendors.kick('chat.message.sent', Buffer.from(JSON.stringify(message)))).status).toBe(200);
  await eventually(
    async () => ((await owner.get('/v1/chat/messages?limit=100')).text.includes(`"m-${said}"`) ? true : undefined),
    'the message',
  );
}
async function banned(id: number): Promise<void> {
  const metadata = { reason: 'spam', created_at: new Date().toISOString(), expires_at: null };
  const ban = { broadcaster: person(broadcaster), moderator: person(2), banned_user: person(id), metadata };
  expect((await vendors.kick('moderation.banned', Buffer.from(JSON.stringify(ban)))).status).toBe(200);
  const entry = async () =>
    (await owner.get('/v1/chat/moderation-log')).text.includes(`"name-${id}"`) ? true : undefined;
  await eventually(entry, 'the entry of the log');
}
const profile = (id: string) => owner.get(`/v1/chat/users/kick/${id}`);
const refresh = (id: string) => owner.send('POST', `/v1/chat/users/kick/${id}/refresh`, {});
const lookups = () => cloud.calls.filter(({ path, query }) => path === '/public/v1/users' && query.has('id')).length;

describe('profiles', () => {
  test('somebody of the chats is shown with what the platform says, asked once a day', async () => {
    await say(31, 'hello');
    const shown = await profile('31');
    expect(shown).toMatchObject({
      status: 200,
      body: {
        data: {
          platform: 'kick',
          platform_user_id: '31',
          username: 'name-31',
          display_name: 'Name 31',
          avatar_url: 'https://pictures.example/31.png',
          bio: 'Streams of 31',
          message_count: 1,
          is_moderator: false,
          ban: null,
          enriched_at: expect.any(String),
        },
      },
    });
    const asked = lookups();
    expect((await profile('31')).body.data.enriched_at).toBe(shown.body.data.enriched_at);
    expect(lookups()).toBe(asked);
    const { data } = await owner.gql(
      '{ platformUserProfile(platform: "kick", platformUserId: "31") { displayName bio messageCount isVip ban { action } } }',
    );
    expect(data.platformUserProfile).toEqual({
      displayName: 'Name 31',
      bio: 'Streams of 31',
      messageCount: 1,
      isVip: false,
      ban: null,
    });
  });

  test('an unknown person has an empty profile, for which nobody is asked', async () => {
    const asked = lookups();
    expect((await profile('999')).body.data).toMatchObject({
      platform_user_id: '999',
      username: null,
      message_count: 0,
      enriched_at: null,
    });
    expect(lookups()).toBe(asked);
  });

  test('a refresh asks anew, and then not for ten minutes', async () => {
    const asked = lookups();
    expect((await refresh('31')).status).toBe(200);
    expect(lookups()).toBe(asked + 1);
    const refused = await refresh('31');
    expect(refused).toMatchObject({
      status: 429,
      body: {
        error: 'REFRESH_COOLDOWN',
        retry_after_seconds: expect.any(Number),
        details: { retry_after_seconds: expect.any(Number) },
      },
    });
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(590);
    const { errors } = await owner.gql(
      'mutation { refreshPlatformUserProfile(platform: "kick", platformUserId: "31") { username } }',
    );
    expect(errors[0].extensions).toMatchObject({ code: 'REFRESH_COOLDOWN', retry_after_seconds: expect.any(Number) });
    await server.database!.db.query(`update platform_user_refreshes set refreshed_at = now() - interval '10 minutes'`);
    const [one, other] = await Promise.all([refresh('31'), refresh('31')]);
    expect([one.status, other.status].sort()).toEqual([200, 429]);
  });

  test('a picture is fetched again after a day, the rest after two weeks', async () => {
    const channels = () => cloud.asked('/public/v1/channels');
    const age = (more: string) =>
      server.database!.db.query(
        `update platform_user_details set enriched_at = now() - interval '25 hours', fetch_after = now() ${more}`,
      );
    const [users, bios] = [lookups(), channels()];
    await age('');
    expect((await profile('31')).body.data).toMatchObject({ bio: 'Streams of 31' });
    expect([lookups(), channels()]).toEqual([users + 1, bios]);
    await age(`, details_at = now() - interval '15 days'`);
    expect((await profile('31')).body.data).toMatchObject({ bio: 'Streams of 31' });
    expect([lookups(), channels()]).toEqual([users + 2, bios + 1]);
    await age(`+ interval '1 minute'`);
    await profile('31');
    expect(lookups()).toBe(users + 2);
  });

  test('an unknown person has a cooldown, too, which outlasts their first message', async () => {
    const asked = lookups();
    expect((await refresh('77')).body.data).toMatchObject({ platform_user_id: '77', username: null });
    expect(await refresh('77')).toMatchObject({ status: 429, body: { error: 'REFRESH_COOLDOWN' } });
    expect(lookups()).toBe(asked);
    await say(77, 'hello');
    expect((await refresh('77')).status).toBe(429);
    await server.database!.db.query(`update unknown_user_refreshes set refreshed_at = now() - interval '10 minutes'`);
    expect((await refresh('77')).status).toBe(200);
  });

  test('a ban is shown until it ends', async () => {
    await say(33, 'spam');
    const ban = async (expires_at: string | null) => {
      const at = new Date().toISOString();
      const metadata = { reason: 'spam', created_at: at, expires_at };
      const act = { broadcaster: person(broadcaster), moderator: person(2), banned_user: person(33), metadata };
      expect((await vendors.kick('moderation.banned', Buffer.from(JSON.stringify(act)))).status).toBe(200);
    };
    const banned = (action: string | null) =>
      eventually(async () => {
        const { data } = (await profile('33')).body;
        return (data.ban?.action ?? null) === action ? data : undefined;
      }, `the ban to be ${action}`);
    await ban(null);
    expect((await banned('ban')).ban).toEqual({
      ...{ action: 'ban', reason: 'spam', moderator_name: 'name-2', ends_at: null },
      created_at: expect.stringMatching(/^20.*Z$/),
    });
    await ban(new Date(Date.now() + 3_600_000).toISOString());
    expect((await banned('timeout')).ban.ends_at).toMatch(/^20.*Z$/);
    await server.database!.db.query(
      `update moderation_log set content = jsonb_set(content::jsonb, '{ends_at}', '"2020-01-01T00:00:00Z"')
       where action = 'timeout'`,
    );
    await banned(null);
  });

  test('a platform that does not answer leaves the profile as it is known', async () => {
    await say(32, 'hi');
    cloud.fail({ path: '/public/v1/users', status: 404 });
    expect((await profile('32')).body.data).toMatchObject({ username: 'name-32', enriched_at: null });
  });
});

test('a breaker opens after failures in a row, for its account and platform alone', async () => {
  const breakers = createProfileBreakers();
  const failing = (status: number) =>
    breakers.run('a', 'kick', () => Promise.reject(new HttpFailed('kick.example', status)));
  for (let refusal = 0; refusal < 9; refusal += 1) await expect(failing(404)).rejects.toThrow(HttpFailed);
  for (let failure = 0; failure < 5; failure += 1) await expect(failing(503)).rejects.toThrow(HttpFailed);
  await expect(failing(503)).rejects.toThrow(PlatformPaused);
  expect(await breakers.run('a', 'trovo', async () => 'other')).toBe('other');
  expect(await breakers.run('b', 'kick', async () => 'other')).toBe('other');
});

test('a follower of Trovo is found in its lists; one further back stays unknown', async () => {
  const http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
  const trovo = trovoChat(http, { api_url: cloud.base_url });
  const by = { user_id: '1', token: 't', client_id: 'c' };
  const numbered = (count: number) => Array.from({ length: count }, (_, index) => String(index));
  cloud.trovoChannel('55', numbered(150));
  cloud.trovoChannel('56', numbered(600));
  const at = '2026-01-15T18:30:00.000Z';
  expect(await trovo.following!(by, '55', '149')).toEqual({ is_follower: true, followed_at: at });
  expect(await trovo.following!(by, '55', '150')).toEqual({ is_follower: false, followed_at: null });
  expect(await trovo.following!(by, '56', '550')).toBeNull();
  await http.close();
});

describe('notes', () => {
  const notes = '/v1/chat/users/kick/51/notes';
  test('are written, changed and deleted, newest first, by those who may', async () => {
    const write = (text: string) => owner.send('POST', notes, { text });
    const { status, body } = await write(' polite ');
    expect(status).toBe(201);
    const note = body.data;
    expect(note).toMatchObject({ text: 'polite', created_by: server.credentials.user_id });
    const second = (await write('likes chess')).body.data;
    expect((await owner.get(notes)).body.data).toEqual([second, note]);
    const changed = await owner.send('PATCH', `${notes}/${note.id}`, { text: 'very polite' });
    expect(changed).toMatchObject({ status: 200, body: { data: { id: note.id, text: 'very polite' } } });
    const { data } = await owner.gql('{ platformUserNotes(platform: "kick", platformUserId: "51") { text } }');
    expect(data.platformUserNotes.map((one: any) => one.text)).toEqual(['likes chess', 'very polite']);
    expect((await owner.send('DELETE', `${notes}/${second.id}`, undefined)).status).toBe(204);
    expect((await owner.get(notes)).body.data).toMatchObject([{ text: 'very polite' }]);

    for (const text of ['  ', 'x'.repeat(2_001)]) expect((await write(text)).status).toBe(400);
    expect((await owner.send('DELETE', `${notes}/${second.id}`, undefined)).status).toBe(404);
    const of_another = `/v1/chat/users/kick/52/notes/${note.id}`;
    expect((await owner.send('PATCH', of_another, { text: 'x' })).status).toBe(404);
    const stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
    expect((await stranger.send('PATCH', `${notes}/${note.id}`, { text: 'x' })).status).toBe(404);
    expect((await stranger.get(notes)).body.data).toEqual([]);
    const rows = await server.database!.db.query(
      `select data::text as text from domain_events where type like 'person_note:%'`,
    );
    expect(rows).toHaveLength(4);
    expect(JSON.stringify(rows)).not.toMatch(/polite|chess|"51"/);
  });

  test('go with the person whom they are about', async () => {
    expect((await owner.get(notes)).body.data).toHaveLength(1);
    await operator.send('POST', '/v1/admin/privacy/chat/erase', { platform: 'kick', user_id: '51' });
    expect((await owner.get(notes)).body.data).toEqual([]);
  });
});

describe('memberships', () => {
  test('tiers come from the level names of member events', async () => {
    expect((await owner.get('/v1/youtube/memberships/tiers')).body.data).toEqual([]);
    const emit = async (snippet: object) => {
      const sent = await owner.send('POST', '/v1/events/emit', { event_type: 'youtube:member', raw: { snippet } });
      expect(sent.status).toBe(200);
    };
    await emit({ newSponsorDetails: { memberLevelName: 'Silver', isUpgrade: false } });
    await emit({ memberMilestoneChatDetails: { memberLevelName: 'Gold', memberMonth: 24 } });
    await emit({ memberMilestoneChatDetails: { memberLevelName: 'Gold', memberMonth: '6' } });
    await emit({ newSponsorDetails: { memberLevelName: 'Gold', isUpgrade: true } });
    await emit({ memberMilestoneChatDetails: { memberLevelName: 'Old', memberMonth: 12 } });
    await emit({ newSponsorDetails: { memberLevelName: 'x'.repeat(40_000), isUpgrade: false } });
    const unknown = { duration_value: null, duration_unit: null, member_months_min: null };
    const named = (name: string) => ({ tooltip: name, tier_name: name, badge_url: null });
    expect((await owner.get('/v1/youtube/memberships/tiers')).body.data).toMatchObject([
      { ...named('Silver'), ...unknown, sort_order: 0 },
      { ...named('Gold'), duration_value: 6, duration_unit: 'MONTHS', member_months_min: 6, sort_order: 1 },
      { ...named('Old'), duration_value: 1, duration_unit: 'YEAR', member_months_min: 12, sort_order: 2 },
    ]);
  });
});

describe('erasure', () => {
  test('needs exactly one person', async () => {
    for (const body of [
      {},
      { user_id: '1' },
      { platform: 'kick' },
      { platform: 'kick', user_id: '1', lumio_user_id: server.credentials.user_id },
    ])
      expect(await operator.send('POST', '/v1/admin/privacy/chat/erase', body)).toMatchObject({
        status: 400,
        body: { error: 'VALIDATION_ERROR' },
      });
    const stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
    const person_1 = { platform: 'kick', user_id: '1' };
    expect((await stranger.send('POST', '/v1/admin/privacy/chat/erase', person_1)).status).toBe(403);
  });

  test('messages and all that names the person go before the answer', async () => {
    await say(41, 'secret words');
    await say(41, 'more secret words');
    await say(42, 'as you said', {
      replies_to: { message_id: 'm-x', content: 'secret words', sender: person(41) },
    });
    expect((await profile('41')).body.data).toMatchObject({ message_count: 2, bio: 'Streams of 41' });
    await banned(41);
    const before = (await owner.get('/v1/chat/messages/count')).body.data.count;
    const erased = await operator.send('POST', '/v1/admin/privacy/chat/erase', { platform: 'kick', user_id: '41' });
    expect(erased).toMatchObject({
      status: 200,
      body: { data: { deleted_message_count: 2, affected_account_ids: [server.credentials.account_id] } },
    });
    expect((await owner.get('/v1/chat/messages/count')).body.data.count).toBe(before - 2);
    expect(
      (await owner.get('/v1/chat/messages?limit=100')).body.data.map((one: any) => one.platform_user_id),
    ).not.toContain('41');
    expect((await profile('41')).body.data).toMatchObject({ username: null, message_count: 0, bio: null });
    expect((await owner.get('/v1/chat/messages?limit=100')).text).not.toContain('secret words');
    expect((await owner.get('/v1/chat/moderation-log?limit=100')).text).not.toContain('name-41');
    const rows = await server.database!.db.query(
      `select 1 as one from (
         select t::text as text from platform_chat_messages t union all select t::text from moderation_log t
         union all select t::text from platform_users t union all select t::text from platform_user_details t
         union all select t::text from outbox t union all select t::text from audit_log t) everything
       where text ~ 'secret words|name-41|Name 41|Streams of 41'`,
    );
    expect(rows).toEqual([]);
    const log = await eventually(async () => {
      const { body } = await operator.get('/v1/admin/audit-log?action=chat_pii_erasure');
      return body.data?.[0];
    }, 'the entry of the audit log');
    expect(JSON.stringify(log)).not.toContain('kick:41');
    const entries = (await owner.get('/v1/chat/moderation-log?platform=kick')).body.data;
    const emptied = entries.filter(({ action }: { action: string }) => action === 'erased');
    expect(emptied).toMatchObject([{ target_user_id: null, reason: null }]);
    const again = await operator.send('POST', '/v1/admin/privacy/chat/erase', { platform: 'kick', user_id: '41' });
    expect(again).toMatchObject({
      status: 200,
      body: { data: { deleted_message_count: 0, affected_account_ids: [] } },
    });
    // A person who returns begins from the start.
    await say(41, 'hello again');
    expect((await profile('41')).body.data).toMatchObject({ username: 'name-41', message_count: 1 });
    const found = await owner.get('/v1/chat/users/search?q=name-41');
    expect(found.body.data).toMatchObject([{ platform_user_id: '41', message_count: 1 }]);
    expect((await owner.get('/v1/chat/messages/count')).body.data.count).toBe(before - 1);
  });

  async function knownAtYoutube(id: string): Promise<void> {
    // The note makes the key of the person.
    expect((await owner.send('POST', `/v1/chat/users/youtube/${id}/notes`, { text: 'x' })).status).toBe(201);
    await server.database!.db.query(
      `insert into platform_users (account_id, person_key, platform, platform_user_id, roles, first_seen_at,
         last_seen_at, message_count, own_messages)
       select $1, key_id, 'youtube', $2, '{}', now(), now(), 1, 1
       from subject_keys order by created_at desc limit 1`,
      [server.credentials.account_id, id],
    );
  }

  test('a user is every login that they ever had, and the channel of a login with Google', async () => {
    const { user_id: lumio_user_id, account_id } = server.credentials;
    const link = async (provider: string, id: string, scopes: string[] = []) => {
      const { access_token } = cloud.tokens.give(id, scopes);
      const linked = await owner.send('POST', '/v1/auth/link', { provider, provider_id: id, access_token });
      expect(linked).toMatchObject({ status: 201 });
      return linked.body.data.id as string;
    };
    const erase = async () =>
      (await operator.send('POST', '/v1/admin/privacy/chat/erase', { lumio_user_id })).body.data;
    await link('google', 'UCown', ['https://www.googleapis.com/auth/youtube.readonly']);
    const unlinked = await link('kick', '61');
    await say(61, 'mine');
    expect((await owner.send('DELETE', `/v1/login-connections/${unlinked}`, undefined)).status).toBe(204);
    await knownAtYoutube('UCown');
    expect(await erase()).toEqual({ deleted_message_count: 1, affected_account_ids: [account_id] });
    expect((await profile('61')).body.data).toMatchObject({ username: null, message_count: 0 });
    const named = await server.database!.db.query(
      `select 1 as one from platform_users where platform_user_id in ('61', 'UCown')`,
    );
    expect(named).toHaveLength(0);
    expect(await erase()).toEqual({ deleted_message_count: 0, affected_account_ids: [] });
    const silent = await link('kick', '62');
    await banned(62);
    await owner.send('POST', '/v1/chat/users/kick/62/notes', { text: 'never writes' });
    expect((await owner.send('DELETE', `/v1/login-connections/${silent}`, undefined)).status).toBe(204);
    const former = () =>
      server.database!.db.query(`select 1 as one from former_logins where provider_account_id = '62'`);
    await eventually(async () => ((await former()).length === 1 ? true : undefined), 'the former login');
    expect(await erase()).toEqual({ deleted_message_count: 0, affected_account_ids: [] });
    expect((await owner.get('/v1/chat/users/kick/62/notes')).body.data).toEqual([]);
    await eventually(
      async () => ((await owner.get('/v1/chat/moderation-log')).text.includes('name-62') ? undefined : true),
      'the entry to be erased',
    );
    expect(await former()).toEqual([]);
    // Of a login that came back.
    await say(61, 'back again');
    expect(await erase()).toMatchObject({ deleted_message_count: 1 });
  });

  test('a member of a YouTube channel is erased with counts', async () => {
    const erase = () => operator.send('DELETE', '/v1/admin/privacy/youtube/member/UCmember', undefined);
    await knownAtYoutube('UCmember');
    const { account_id } = server.credentials;
    const cooldown = `insert into platform_user_refreshes (account_id, person_key, refreshed_at)
      select account_id, person_key, now() from platform_users where platform_user_id = 'UCmember'`;
    await server.database!.db.query(cooldown);
    expect((await erase()).body.data).toMatchObject({ erased_key_count: 2, affected_account_ids: [account_id] });
    expect((await erase()).body.data).toMatchObject({ erased_key_count: 0, deleted_message_count: 0 });

    const gone = await operator.send('DELETE', '/v1/admin/privacy/youtube/member/UCsomebody', undefined);
    expect(gone).toMatchObject({
      status: 200,
      body: { data: { erased_key_count: 0, deleted_message_count: 0, affected_account_ids: [] } },
    });
    const { data } = await operator.gql(
      'mutation { eraseYoutubeMemberData(input: { id: "UCsomebody" }) { erasedKeyCount deletedMessageCount } }',
    );
    expect(data.eraseYoutubeMemberData).toEqual({ erasedKeyCount: 0, deletedMessageCount: 0 });
  });
});
