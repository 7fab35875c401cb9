import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { FakeChatCloud } from '../vendors/chat-cloud';

const WEB = 'https://app.example';

let cloud: FakeChatCloud;
let server: TestServer;
let owner: ApiClient;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({
    env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB, LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});
beforeEach(() => {
  cloud.sent.length = cloud.acts.length = 0;
  cloud.drop_reason = null;
});

/** Links a login of the owner at a provider; returns its token. */
async function login(provider: string, id: string, scopes: string[] = []): Promise<string> {
  const { access_token } = cloud.tokens.give(id, scopes);
  const linked = await owner.send('POST', '/v1/auth/link', { provider, provider_id: id, access_token });
  expect(linked).toMatchObject({ status: 201 });
  return access_token;
}
async function call(path: string, body: object, key: string | undefined, api: ApiClient) {
  const answer = await api.send('POST', path, body, key ? { 'idempotency-key': key } : {});
  return { ...answer, body: answer.body.data ?? answer.body };
}
const say = (body: object, key?: string, api = owner) => call('/v1/chat/send', body, key, api);
const act = (body: object) => call('/v1/chat/moderate', body, undefined, owner);
async function channelOf(platform: string): Promise<string> {
  const { body } = await owner.get('/v1/connections/channel');
  return body.data.find((one: any) => one.platform === platform).platform_channel_id;
}

describe('send', () => {
  let token: string;
  beforeAll(async () => {
    token = await login('twitch', '900');
  });

  test('the acting user speaks by their login, on both protocols', async () => {
    const answer = await say({ platform: 'twitch', message: ' hello ', reply_to_message_id: 'abc' });
    expect(answer).toMatchObject({
      status: 200,
      body: { sent: true, message_id: expect.any(String), error: null, error_code: null, platform: 'twitch' },
    });
    const broadcaster_id = await channelOf('twitch');
    expect(cloud.sent).toEqual([
      {
        owner: '900',
        query: {},
        body: { broadcaster_id, sender_id: '900', message: 'hello', reply_parent_message_id: 'abc' },
      },
    ]);
    const { data } = await owner.gql(
      'mutation { sendChatToPlatform(platform: "twitch", message: "hi") { sent messageId error errorCode platform } }',
    );
    expect(data.sendChatToPlatform).toMatchObject({ sent: true, errorCode: null, platform: 'twitch' });
  });

  test('the emotes of the login are read page by page; a user without one has none', async () => {
    const emotes = async (api: ApiClient) => (await api.get('/v1/emotes/user')).body.data;
    expect(await emotes(owner)).toEqual({
      sets: [
        {
          provider: 'twitch',
          emotes: ['e1', 'e2'].map((id) => ({
            ...{ id, name: `name_${id}`, animated: id === 'e2' },
            url: `https://static-cdn.jtvnw.net/emoticons/v2/${id}/default/dark/2.0`,
          })),
        },
      ],
    });
    const stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
    expect(await emotes(stranger)).toEqual({ sets: [] });
    cloud.fail({ path: '/helix/chat/emotes/user', status: 401 });
    expect(await emotes(owner)).toEqual({ sets: [] });
  });

  test('what the platform drops is send_failed, with its reason', async () => {
    cloud.drop_reason = 'Your message is held for review';
    expect((await say({ platform: 'twitch', message: 'bad' })).body).toEqual({
      sent: false,
      message_id: null,
      error: 'Your message is held for review',
      error_code: 'send_failed',
      platform: 'twitch',
    });
    cloud.fail({ path: '/helix/chat/messages', status: 422, body: { message: 'Unprocessable' } });
    expect((await say({ platform: 'twitch', message: 'bad' })).body).toMatchObject({
      error: 'Unprocessable',
      error_code: 'send_failed',
    });
  });

  test('a refused token flags the login until its person logs in again', async () => {
    cloud.tokens.expire(token);
    const refused = { sent: false, error_code: 'login_reconnect_required' };
    expect((await say({ platform: 'twitch', message: 'x' })).body).toMatchObject(refused);
    const calls = cloud.calls.length;
    await eventually(
      async () =>
        (await owner.get('/v1/connections/status')).body.data.find((one: any) => one.login_reconnect_required),
      'the flag',
    );
    expect((await say({ platform: 'twitch', message: 'x' })).body).toMatchObject(refused);
    expect(cloud.calls.length).toBe(calls);
    token = await login('twitch', '900');
    await eventually(
      async () => ((await say({ platform: 'twitch', message: 'x' })).body.sent ? true : undefined),
      'a message after the login',
    );
  });

  test('a scope that the login lacks is a refusal, and flags nothing', async () => {
    cloud.fail({ path: '/helix/chat/messages', status: 401, body: { message: 'Missing scope: user:write:chat' } });
    expect((await say({ platform: 'twitch', message: 'x' })).body).toMatchObject({
      error: 'Missing scope: user:write:chat',
      error_code: 'send_failed',
    });
    expect((await say({ platform: 'twitch', message: 'x' })).body.sent).toBe(true);
  });

  test('nobody speaks for a member without a login, nor for a key without a bot', async () => {
    const refused = { sent: false, error_code: 'login_reconnect_required' };
    expect((await say({ platform: 'kick', message: 'x' })).body).toMatchObject(refused);
    const made = await owner.send('POST', '/v1/service-keys', {
      label: 'bot',
      permissions: ['chat:write'],
    });
    const key = new ApiClient(server.base_url, made.body.data.key);
    expect((await say({ platform: 'twitch', message: 'x' }, undefined, key)).body).toMatchObject(refused);
    expect(cloud.sent).toEqual([]);
    const begun = await owner.send('POST', '/v1/connections/oauth/twitch/start', { kind: 'bot', return_to: WEB });
    const { code, state } = cloud.login(begun.body.authorize_url, '555');
    expect((await owner.send('POST', '/v1/connections/oauth/twitch/exchange', { code, state })).status).toBe(200);
    await eventually(
      async () => ((await say({ platform: 'twitch', message: 'beep' }, undefined, key)).body.sent ? true : undefined),
      'the bot to speak',
    );
    expect(cloud.sent).toMatchObject([{ owner: '555', body: { sender_id: '555', message: 'beep' } }]);
  });

  test('what a platform cannot take is refused before any call', async () => {
    const calls = cloud.calls.length;
    for (const [body, message] of [
      [{ platform: 'twitch', message: 'x'.repeat(501) }, 'message: at most 500 characters on twitch'],
      [{ platform: 'youtube', message: '😀'.repeat(201) }, 'message: at most 200 characters on youtube'],
      [{ platform: 'youtube', message: 'x' }, 'The account has no broadcast on air at YouTube'],
      [
        { platform: 'twitch', message: 'x', for_source_only: true },
        'The message cannot be kept in the own channel: the speaker has not allowed the app to speak (scope user:bot)',
      ],
    ] as const)
      expect(await say(body)).toMatchObject({ status: 400, body: { message } });
    const foreign = { platform: 'youtube', message: 'x', live_chat_id: 'foreign' };
    expect(await say(foreign)).toMatchObject({
      status: 404,
      body: { message: "live_chat_id is no active live chat of the account's broadcasts" },
    });
    expect(cloud.calls.length).toBe(calls);
  });

  test('a message for the own channel of a shared chat needs the consents of its speaker and its channel', async () => {
    const body = { platform: 'twitch', message: 'ours', for_source_only: true };
    const channel = await channelOf('twitch');
    await login('twitch', '900', ['user:bot']);
    const no = 'the channel has not allowed the app to speak in its chat (scope channel:bot)';
    const refused = { status: 400, body: { message: `The message cannot be kept in the own channel: ${no}` } };
    expect(await say(body)).toMatchObject(refused);
    const begun = await owner.send('POST', '/v1/connections/oauth/twitch/start', { kind: 'channel', return_to: WEB });
    const { code, state } = cloud.login(begun.body.authorize_url, channel);
    expect((await owner.send('POST', '/v1/connections/oauth/twitch/exchange', { code, state })).status).toBe(200);
    expect(await say(body)).toMatchObject({ status: 200, body: { error_code: 'send_failed' } });
    cloud.knows_app = true;
    expect(await say(body)).toMatchObject({ status: 200, body: { sent: true } });
    const ours = { broadcaster_id: channel, sender_id: '900', message: 'ours', for_source_only: true };
    expect(cloud.sent).toMatchObject([{ owner: null, body: ours }]);
    const without = `update connection_grants set scopes = array_remove(scopes, 'channel:bot') where platform = 'twitch'`;
    await server.database!.db.query(without);
    expect(await say(body)).toMatchObject(refused);
    token = await login('twitch', '900');
  });

  test('an unknown outcome is internal_error; its repetition looks for the echo and sends nothing', async () => {
    await login('kick', '777');
    const body = { platform: 'kick', message: 'once' };
    cloud.fail({ path: '/public/v1/chat', status: 'cut' });
    const unknown = { sent: false, error_code: 'internal_error' };
    expect((await say(body, 'once')).body).toMatchObject(unknown);
    expect((await say(body, 'once')).body).toMatchObject(unknown);
    expect(cloud.calls.filter(({ path }) => path === '/public/v1/chat')).toHaveLength(1);
    const vendors = new VendorCloud(server.base_url, server.credentials);
    const broadcaster = Number(await channelOf('kick'));
    const echo = {
      message_id: 'echo-1',
      broadcaster: { user_id: broadcaster, username: 'b', channel_slug: 'b' },
      sender: { user_id: 777, username: 'Name 777', channel_slug: 'name-777' },
      content: 'once',
      emotes: null,
      created_at: new Date().toISOString(),
    };
    const others = [
      { message_id: 'other-text', content: 'another' },
      { message_id: 'other-person', sender: { user_id: 778, username: 'Name 778', channel_slug: 'name-778' } },
      { message_id: 'earlier', created_at: new Date(Date.now() - 600_000).toISOString() },
    ];
    for (const more of [...others, {}]) {
      const said = Buffer.from(JSON.stringify({ ...echo, ...more }));
      expect((await vendors.kick('chat.message.sent', said)).status).toBe(200);
    }
    const kept = await server.database!.db.query(`select s::text as row from chat_sends s where platform = 'kick'`);
    expect(JSON.stringify(kept)).not.toMatch(/\bonce\b|\b777\b/);
    // The login is refused meanwhile: what was sent before is found all the same.
    const refused = (now: boolean) =>
      server.database!.db.query(`update login_connections set reconnect_required = $1 where provider = 'kick'`, [now]);
    await refused(true);
    const found = await eventually(async () => {
      const { body: said } = await say(body, 'once');
      return said.sent ? said : undefined;
    }, 'the echo');
    expect(found).toMatchObject({ sent: true, message_id: 'echo-1', error_code: null });
    await refused(false);
    const again = await say(body, 'once');
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    expect(cloud.calls.filter(({ path }) => path === '/public/v1/chat')).toHaveLength(1);
  });

  test('without an echo within a minute the message has failed', async () => {
    const body = { platform: 'kick', message: 'never' };
    cloud.fail({ path: '/public/v1/chat', status: 500 });
    expect((await say(body, 'never')).body).toMatchObject({ error_code: 'internal_error' });
    await server.database!.db.query(`update chat_sends set asked_at = asked_at - interval '2 minutes'`);
    expect((await say(body, 'never')).body).toMatchObject({
      error_code: 'send_failed',
      error: 'The message did not appear in the chat',
    });
  });

  test('a speaker keeps the pace of the platform, a moderator a higher one, also in concurrent requests', async () => {
    const { db } = server.database!;
    await db.query('delete from chat_sends');
    const together = async (count: number) => {
      const said = Array.from({ length: count }, (_, n) => say({ platform: 'twitch', message: `n ${n}` }));
      return (await Promise.all(said)).map(({ body }) => body.error ?? 'sent').sort();
    };
    const fast = 'You are sending messages too quickly';
    expect(await together(22)).toEqual([fast, fast, ...Array.from({ length: 20 }, () => 'sent')]);
    await db.query(
      `insert into platform_users (account_id, person_key, platform, platform_user_id, roles, first_seen_at,
         last_seen_at, message_count, own_messages)
       values ($1, gen_random_uuid(), 'twitch', '900', '{moderator}', now(), now(), 1, 1)`,
      [server.credentials.account_id],
    );
    expect(await together(1)).toEqual(['sent']);
    // Other channels of the speaker have a pace of their own.
    await db.query(`update chat_sends set channel_id = 'another'`);
    await db.query(`update platform_users set roles = '{}' where platform_user_id = '900'`);
    expect(await together(1)).toEqual(['sent']);
  });
});

describe('moderate', () => {
  const DONE = { success: true, details: null, id: null };
  const known = (platform: string, id: string, username: string, roles: string[] = []) =>
    server.database!.db.query(
      `insert into platform_users (account_id, person_key, platform, platform_user_id, username, roles, first_seen_at,
         last_seen_at, message_count, own_messages)
       values ($1, gen_random_uuid(), $2, $3, $4, $5, now(), now(), 1, 1)`,
      [server.credentials.account_id, platform, id, username, roles],
    );
  const onAir = async (live_chat_id: string) =>
    server.database!.db.query(
      `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, live_chat_id, updated_at)
       values ($1, 'youtube', 'b-1', $2, true, $3, now())`,
      [server.credentials.account_id, await channelOf('youtube'), live_chat_id],
    );

  test('a ban is carried out by the login, logged once, and audited with its target sealed', async () => {
    const answer = await act({ action: 'BAN', platform: 'twitch', user_id: '4242', reason: 'spam spam' });
    expect(answer).toMatchObject({ status: 200, body: { success: true, details: null } });
    expect(cloud.acts).toMatchObject([
      {
        route: 'POST /helix/moderation/bans',
        owner: '900',
        query: { broadcaster_id: await channelOf('twitch'), moderator_id: '900' },
        body: { data: { user_id: '4242', reason: 'spam spam' } },
      },
    ]);
    const { body } = await owner.get('/v1/chat/moderation-log?user_id=4242&platform=twitch');
    expect(body.data).toMatchObject([
      { action: 'ban', target_user_id: '4242', moderator_id: '900', reason: 'spam spam', platform: 'twitch' },
    ]);
    const noted = await server.database!.db.query(
      `select data::text as text from domain_events where type = 'chat:moderated'`,
    );
    expect(noted).toHaveLength(1);
    expect(noted[0]!['text']).not.toMatch(/4242|spam/);
    const audit = await eventually(async () => {
      const { body: log } = await owner.get('/v1/account/audit-log?action=chat:moderated');
      return log.data?.[0];
    }, 'the entry of the audit log');
    expect(JSON.stringify(audit)).toContain('4242');
  });

  test('an act whose answer was lost is answered again, and not carried out twice', async () => {
    const body = { action: 'TIMEOUT', platform: 'twitch', user_id: '4243', duration_secs: 60 };
    const done = await call('/v1/chat/moderate', body, 'lost', owner);
    expect(done).toMatchObject({ status: 200, body: { success: true } });
    await server.database!.db.query('update idempotency_keys set answer = null, locked_until = now(), holder = null');
    expect((await call('/v1/chat/moderate', body, 'lost', owner)).body).toEqual(done.body);
    expect(cloud.acts).toHaveLength(1);
    const { body: log } = await owner.get('/v1/chat/moderation-log?user_id=4243&platform=twitch');
    expect(log.data).toHaveLength(1);
  });

  test('what a platform does not support, or does not do, is answered as the specification says', async () => {
    for (const [body, status, message] of [
      [{ action: 'BAN', platform: 'kick', user_id: '1' }, 400, 'kick does not support BAN'],
      [{ action: 'TIMEOUT', platform: 'trovo', user_id: '1', duration_secs: 5 }, 400, 'trovo does not support TIMEOUT'],
      [{ action: 'BAN', platform: 'twitch' }, 400, 'user_id is required for BAN'],
      [{ action: 'TIMEOUT', platform: 'twitch', user_id: '1' }, 400, 'duration_secs is required for TIMEOUT'],
      [{ action: 'DELETE', platform: 'twitch', user_id: '1' }, 400, 'message_id is required for DELETE'],
      [{ action: 'DELETE', platform: 'kick', message_id: 'foreign' }, 404, 'Message not found'],
      [
        { action: 'TIMEOUT', platform: 'youtube', user_id: '1', duration_secs: 86_401 },
        400,
        'duration_secs: at most 86400 on youtube',
      ],
      [{ action: 'DELETE', platform: 'twitch', message_id: 'foreign' }, 404, 'Message not found'],
      [{ action: 'DELETE', platform: 'trovo', message_id: 'foreign' }, 400, 'trovo does not support DELETE'],
      [{ action: 'BAN', platform: 'trovo', user_id: '1' }, 404, 'The chats of the account do not know this person'],
    ] as const)
      expect(await act(body)).toMatchObject({ status, body: { message } });
    expect(cloud.acts).toEqual([]);
    cloud.fail({ path: '/helix/moderation/bans', status: 403, body: { message: 'missing scope' } });
    expect(await act({ action: 'BAN', platform: 'twitch', user_id: '1' })).toMatchObject({
      status: 200,
      body: { success: false, details: 'missing scope' },
    });
    const { data } = await owner.gql(
      'mutation { moderateChat(input: { action: DELETE, platform: "kick", messageId: "echo-1" }) { success details } }',
    );
    expect(data.moderateChat).toEqual({ success: true, details: null });
    expect(cloud.acts).toMatchObject([{ route: 'DELETE /public/v1/chat/echo-1', owner: '777' }]);
    const { body } = await owner.get('/v1/chat/messages?search=once');
    const deleted = body.data.filter((one: { deleted_at: string | null }) => one.deleted_at !== null);
    expect(deleted).toMatchObject([{ platform_message_id: 'echo-1' }]);
  });

  test('Trovo bans by the name in the chat, and its word in the body counts', async () => {
    await login('trovo', '31');
    await known('trovo', '5', 'ada_1');
    await known('trovo', '6', 'ada lovelace');
    const target = { action: 'BAN', platform: 'trovo', user_id: '5' };
    expect((await act(target)).body).toEqual({ success: true, details: null });
    const unban = { platform: 'trovo', user_id: '5' };
    expect((await call('/v1/chat/unban', unban, undefined, owner)).body).toEqual(DONE);
    expect(cloud.acts.map(({ body }) => body['command'])).toEqual(['ban ada_1', 'unban ada_1']);
    expect(await act({ ...target, user_id: '6' })).toMatchObject({ status: 404 });
    const body = { is_success: false, display_msg: 'You are no moderator' };
    cloud.fail({ path: '/openplatform/channels/command', status: 200, body });
    expect((await act(target)).body).toEqual({ success: false, details: 'You are no moderator' });
  });

  test('YouTube decides who is protected; its bans are taken back by their ids', async () => {
    await login('google', 'g-1');
    await onAir('live-1');
    await known('youtube', 'UCmod', 'mod', ['moderator']);
    const refusal = (reason: string) => ({ error: { message: 'No', errors: [{ reason }] } });
    const ban = (user_id: string) => act({ action: 'BAN', platform: 'youtube', user_id });
    const bans = { path: '/youtube/v3/liveChat/bans', status: 403 };
    const protected_user = { status: 403, body: { error: 'FORBIDDEN' } };
    cloud.fail({ ...bans, body: refusal('liveChatBanInsertionNotAllowed') });
    expect(await ban('UCsomebody')).toMatchObject(protected_user);
    for (const [user_id, answer] of [
      ['UCsomebody', { status: 200, body: { success: false, details: 'No' } }],
      ['UCmod', protected_user],
      [await channelOf('youtube'), protected_user],
    ] as const) {
      cloud.fail({ ...bans, body: refusal('insufficientPermissions') });
      expect(await ban(user_id)).toMatchObject(answer);
    }
    const unban = () => call('/v1/chat/unban', { platform: 'youtube', user_id: 'UCx' }, undefined, owner);
    expect(await unban()).toMatchObject({ status: 404, body: { message: 'No ban of this person was made here' } });
    expect((await ban('UCx')).body).toEqual({ success: true, details: null });
    expect(await unban()).toMatchObject({ status: 200, body: DONE });
    expect(cloud.acts.at(-1)).toMatchObject({ route: 'DELETE /youtube/v3/liveChat/bans', query: { id: 'ban-1' } });
    expect((await unban()).status).toBe(404);
    const { body } = await owner.get('/v1/chat/moderation-log?user_id=UCx&platform=youtube');
    expect(body.data.map((one: any) => one.action)).toEqual(['unban', 'ban']);
    expect(JSON.stringify(body)).not.toContain('ban-1');
  });

  test('an unban acts by the login, and a repetition under its key publishes nothing again', async () => {
    const unban = { platform: 'twitch', user_id: '4242' };
    const unbanned = await call('/v1/chat/unban', unban, 'unban', owner);
    expect(unbanned).toMatchObject({ status: 200, body: DONE });
    const channel = await channelOf('twitch');
    const query = { broadcaster_id: channel, moderator_id: '900', user_id: '4242' };
    expect(cloud.acts).toMatchObject([{ route: 'DELETE /helix/moderation/bans', owner: '900', query }]);
    await server.database!.db.query('update idempotency_keys set answer = null, locked_until = now(), holder = null');
    expect((await call('/v1/chat/unban', unban, 'unban', owner)).body).toEqual(DONE);
    expect(cloud.acts).toHaveLength(1);
    const { body } = await owner.get('/v1/chat/moderation-log?user_id=4242&platform=twitch');
    expect(body.data.map((one: any) => one.action)).toEqual(['unban', 'ban']);
    const kick = await call('/v1/chat/unban', { ...unban, platform: 'kick' }, undefined, owner);
    expect(kick).toMatchObject({ status: 400, body: { error: 'BAD_REQUEST' } });
    const { data } = await owner.gql('mutation { unbanChatUser(platform: "twitch", userId: "77") { success id } }');
    expect(data.unbanChatUser).toEqual({ success: true, id: null });
  });

  test('writes to YouTube take 50 units each, at most half of the units of a day', async () => {
    const { db } = server.database!;
    const send = () => say({ platform: 'youtube', message: 'x', live_chat_id: 'live-1' });
    // The first message asks for the channel of the login, too.
    expect((await send()).body).toMatchObject({ sent: true });
    expect(await db.query('select 1 as one from user_channels')).toHaveLength(1);
    await db.query('update youtube_quota set used = 9000, written = 4950');
    expect((await send()).body).toMatchObject({ sent: true, message_id: 'yt-1' });
    expect(await db.query('select used, written from youtube_quota')).toEqual([{ used: 9050, written: 5000 }]);
    expect((await send()).body).toMatchObject({ sent: false, error_code: 'send_failed' });
    const ban = { action: 'BAN', platform: 'youtube', user_id: 'UCy' };
    expect((await act(ban)).body).toMatchObject({ success: false });
    await db.query('update youtube_quota set used = 9980, written = 0');
    expect((await send()).body).toMatchObject({ sent: false, error_code: 'send_failed' });
  });
});
