import { randomUUID } from 'node:crypto';
import { feedText, mirrorText, personName } from '../../domain/connections/discord-posts';
import { isAnsweredInDiscord, isDiscordCommand } from '../../services/automation/discord-commands';
import { discordUses } from '../../services/discord/uses';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { FakeDiscord } from '../vendors/discord-cloud';

const WEB = 'https://app.example';
const BACK = `${WEB}/connections`;
const GUILD = '9001';
const BOT_TOKEN = 'discord-bot-token';
const PATH = `/v1/discord-guilds/${GUILD}`;

let discord: FakeDiscord;
let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  discord = await new FakeDiscord().start();
  discord.bot_tokens.add(BOT_TOKEN);
  discord.rest.channels.set(GUILD, [
    { id: '12', name: 'news', type: 5, position: 2 },
    { id: '11', name: 'general', type: 0, position: 1 },
    { id: '13', name: 'voice', type: 2, position: 0 },
  ]);
  server = await startServer({
    env: {
      LUMIO_OUTGOING__ALLOW_LOOPBACK: 'true',
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_DISCORD__CLIENT_ID: '4242',
      LUMIO_DISCORD__CLIENT_SECRET: 'app-secret',
      LUMIO_DISCORD__BOT_TOKEN: BOT_TOKEN,
      LUMIO_DISCORD__API_URL: discord.base_url,
    },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await discord?.close();
});

/** Adds the bot to the server, as somebody does on the page of Discord. */
async function addBot(api: ApiClient): Promise<string> {
  const { body } = await api.send('POST', '/v1/discord-guilds/authorize', { return_to: BACK });
  expect(new URL(body.authorize_url).pathname).toBe('/oauth2/authorize');
  const code = discord.tokens.code(GUILD, ['bot', 'applications.commands']);
  const done = await api.send('POST', '/v1/connections/oauth/discord/exchange', { code, state: body.state });
  expect(done).toMatchObject({ status: 200, body: { kind: 'bot', platform: 'discord' } });
  return done.body.connection_id as string;
}

test('a server is added, configured and shown on both protocols, and loses all with its bot', async () => {
  expect((await owner.get('/v1/discord-guilds')).body.data).toEqual([]);
  expect(await owner.get(PATH)).toMatchObject({ status: 404, body: { message: 'Discord server not found' } });
  const connection_id = await addBot(owner);
  const shown = {
    ...{ guild_id: GUILD, guild_name: `Guild ${GUILD}`, connected_at: expect.any(String) },
    ...{ settings: {}, channels: {}, slash_skipped: expect.any(Array) },
  };
  expect((await owner.get('/v1/discord-guilds')).body.data).toEqual([shown]);
  expect((await owner.get(PATH)).body.data).toEqual(shown);

  const settings = { event_types: ['kick:follower'], live_message: '{{channel}} is live', theme: { dark: true } };
  expect(await owner.send('PATCH', PATH, { settings })).toMatchObject({ status: 200, body: { data: { settings } } });
  for (const [bad, message] of [
    [{ large: 'x'.repeat(16 << 10) }, 'settings is larger than 16 KiB of JSON'],
    [{ event_types: 'all' }, expect.stringContaining('settings.event_types')],
    [{ live_message: 7 }, expect.stringContaining('settings.live_message')],
  ] as const)
    expect(await owner.send('PATCH', PATH, { settings: bad })).toMatchObject({ status: 400, body: { message } });

  expect((await owner.get(`${PATH}/channels`)).body.data).toEqual([
    { id: '11', name: 'general', type: 0 },
    { id: '12', name: 'news', type: 5 },
  ]);
  const put = (feature: string, channel_id: string) => owner.send('PUT', `${PATH}/channels/${feature}`, { channel_id });
  expect(await put('event_feed', '11')).toMatchObject({
    status: 200,
    body: { data: { channels: { event_feed: '11' } } },
  });
  expect(await put('chat_mirror', '13')).toMatchObject({
    status: 400,
    body: { message: 'channel_id must be a text channel of this server' },
  });
  expect(await put('music', '11')).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
  const { data } = await owner.gql(`mutation {
    setDiscordChannel(guildId: "${GUILD}", feature: "live_notification", channelId: "12") { channels settings } }`);
  expect(data.setDiscordChannel).toEqual({ settings, channels: { event_feed: '11', live_notification: '12' } });
  const listed = await owner.gql(`{ discordChannels(guildId: "${GUILD}") { id name type } discordGuilds { guildId } }`);
  expect(listed.data).toMatchObject({ discordChannels: [{ id: '11' }, { id: '12' }], discordGuilds: [{}] });

  const remove = () => owner.send('DELETE', `${PATH}/channels/event_feed`, undefined);
  expect([(await remove()).status, (await remove()).status]).toEqual([204, 404]);
  expect((await owner.send('DELETE', `${PATH}/channels/music`, undefined)).status).toBe(400);

  expect((await owner.send('DELETE', `/v1/bot-connections/${connection_id}`, undefined)).status).toBe(204);
  expect((await owner.get(PATH)).status).toBe(404);
  await addBot(owner);
  expect((await owner.get(PATH)).body.data).toMatchObject({ settings: {}, channels: {} });
});

test('strangers reach no server of the account, and an unreachable Discord is no server error', async () => {
  expect((await stranger.get('/v1/discord-guilds')).body.data).toEqual([]);
  for (const [method, path, body] of [
    ['GET', PATH, undefined],
    ['PATCH', PATH, { settings: {} }],
    ['GET', `${PATH}/channels`, undefined],
    ['PUT', `${PATH}/channels/event_feed`, { channel_id: '11' }],
    ['DELETE', `${PATH}/channels/event_feed`, undefined],
    ['DELETE', `${PATH}/channels/music`, undefined],
  ] as const)
    expect([path, (await stranger.send(method, path, body)).status]).toEqual([path, 404]);
  const nobody = new ApiClient(server.base_url, 'nobody');
  expect((await nobody.get(PATH)).status).toBe(401);
  discord.fail({ path: `/api/v10/guilds/${GUILD}/channels`, status: 500 });
  expect((await owner.get(`${PATH}/channels`)).status).toBe(503);
});

test('texts of posts name their person, without a meaning for Discord', () => {
  const raw = JSON.stringify({ follower: { user_id: 7, username: 'a*da @everyone' } });
  expect(personName(raw)).toBe('a*da @everyone');
  expect([personName('[]'), personName('"[erased]"')]).toEqual([null, null]);
  const post = { name: personName(raw), platform: 'kick', type: 'kick:gift_sub' };
  expect(feedText(post)).toBe('**a\\*da \\@everyone** · gift sub (kick)');
  expect(feedText({ ...post, name: null })).toBe('gift sub (kick)');
  expect([...mirrorText({ ...post, text: '😀'.repeat(3_000) })]).toHaveLength(2_000);
});

describe('posts', () => {
  const FEED = '11';
  const MIRROR = '12';
  const LIVE = '14';
  const texts = (channel: string) => discord.rest.textOf(channel);
  let vendors: VendorCloud;
  let chatter = 500;
  const kick = () => Number(server.credentials.connections.kick.platform_channel_id);
  const say = (content: string, more: object = {}, message_id = randomUUID()) => {
    const sender = { user_id: (chatter += 1), username: 'ada_l', is_anonymous: false, is_verified: false };
    const body = {
      ...{ message_id, broadcaster: { user_id: kick(), username: 'lumio_demo' }, emotes: [] },
      ...{ sender, content, created_at: new Date().toISOString(), ...more },
    };
    return vendors.kick('chat.message.sent', Buffer.from(JSON.stringify(body)), message_id);
  };
  const live = (id: string, started_at: string) => {
    const broadcaster = { user_id: kick(), username: 'lumio_demo' };
    const body = { broadcaster, is_live: true, title: 'Chess', started_at, ended_at: null };
    return vendors.kick('livestream.status.updated', Buffer.from(JSON.stringify(body)), id);
  };

  beforeAll(async () => {
    vendors = new VendorCloud(server.base_url, server.credentials);
    discord.rest.channels.get(GUILD)!.push({ id: LIVE, name: 'live', type: 0, position: 3 });
    await owner.send('PATCH', PATH, { settings: { live_message: 'Now: {{title}} on {{platform}}' } });
    for (const [feature, channel_id] of [
      ['event_feed', FEED],
      ['chat_mirror', MIRROR],
      ['live_notification', LIVE],
    ] as const)
      expect((await owner.send('PUT', `${PATH}/channels/${feature}`, { channel_id })).status).toBe(200);
  });

  test('a follow, a line and a broadcast appear once each, and ping nobody', async () => {
    const ids = [randomUUID(), randomUUID(), randomUUID()] as const;
    const started_at = new Date(Date.now() - 1_000).toISOString();
    for (let time = 0; time < 2; time += 1) {
      await vendors.kickFollow(77, ids[0]);
      await say('Hello @everyone', {}, ids[1]);
      await live(ids[2], started_at);
    }
    await live(randomUUID(), started_at);
    await eventually(async () => texts(LIVE)[0], 'the broadcast to be posted');
    await eventually(async () => texts(MIRROR)[0], 'the line to be posted');
    await eventually(async () => texts(FEED).find((text) => text.includes('viewer')), 'the follow to be posted');
    // Later causes are posted after earlier ones.
    await vendors.kickFollow(78);
    await say('last');
    await eventually(async () => texts(FEED).filter((text) => text.includes('follower'))[1], 'the next follow');
    await eventually(async () => texts(MIRROR)[1], 'the next line');
    expect(texts(LIVE)).toEqual(['Now: Chess on kick']);
    expect(texts(MIRROR)).toEqual([
      expect.stringMatching(/^\*\*ada\\_l\*\* \(kick\): Hello @everyone$/),
      expect.stringContaining('last'),
    ]);
    expect(texts(FEED).filter((text) => text.includes('follower'))).toEqual([
      '**viewer\\_77** · follower (kick)',
      '**viewer\\_78** · follower (kick)',
    ]);
    for (const { allowed_mentions } of discord.rest.posted) expect(allowed_mentions).toMatchObject({ parse: [] });
    expect(discord.rest.exceeded).toBe(0);
  });

  test('a post without an answer is made once, and its outcome stored', async () => {
    const path = `/api/v10/channels/${MIRROR}/messages`;
    discord.fail({ path, status: 'cut' });
    const before = discord.asked(path);
    await say('cut');
    const { account_id } = server.credentials;
    await eventually(async () => {
      const rows = await server.database!.db.query(
        `select 1 from discord_posts where account_id = $1 and status = 'unknown'`,
        [account_id],
      );
      return rows[0];
    }, 'the unknown outcome to be stored');
    await say('after');
    await eventually(async () => texts(MIRROR).find((text) => text.endsWith('after')), 'the next line');
    expect(discord.asked(path)).toBe(before + 2);
  });

  test('old records, other types than those of the feed, and ended uses post nothing', async () => {
    const [feed, mirror] = [texts(FEED).length, texts(MIRROR).length];
    await owner.send('PATCH', PATH, { settings: { event_types: ['kick:subscription'] } });
    const old = new Date(Date.now() - 6 * 60_000).toISOString();
    await say('too old', { created_at: old });
    await vendors.kickFollow(79);
    await owner.send('POST', '/v1/events/test', { event_type: 'kick:follower' });
    await say('fresh');
    await eventually(async () => texts(MIRROR)[mirror], 'the fresh line');
    expect(texts(MIRROR).slice(mirror)).toEqual([expect.stringContaining('fresh')]);
    await owner.send('DELETE', `${PATH}/channels/chat_mirror`, undefined);
    await owner.send('PATCH', PATH, { settings: {} });
    await say('unseen');
    await vendors.kickFollow(80);
    await eventually(async () => texts(FEED)[feed], 'the follow of a feed of all types');
    expect(texts(FEED).slice(feed)).toEqual(['**viewer\\_80** · follower (kick)']);
    expect(texts(MIRROR)).toHaveLength(mirror + 1);
  });

  test('an account without bots has no uses of channels, and keeps them for later', async () => {
    const { account_id } = server.credentials;
    const bots = (enabled: boolean) =>
      owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
        features: [{ key: 'feature:bots', enabled }],
      });
    const untilUses = (count: number) =>
      eventually(async () => {
        const uses = await discordUses(server.database!.db, [account_id], ['event_feed']);
        return uses.length === count ? true : undefined;
      }, `${count} uses`);
    await untilUses(1);
    const command = { name: 'off', response_type: 'text', response: 'x' };
    expect((await owner.send('POST', '/v1/bot-commands', command)).status).toBe(201);
    const { db } = server.database!;
    const isUsable = async () => [
      await isDiscordCommand(db, account_id, 'off'),
      await isAnsweredInDiscord(db, { account_id, guild_id: GUILD, word: 'off' }),
    ];
    expect(await isUsable()).toEqual([true, true]);
    expect((await bots(false)).status).toBe(200);
    await untilUses(0);
    expect(await isUsable()).toEqual([false, false]);
    expect((await bots(true)).status).toBe(200);
    await untilUses(1);
  });
});

describe('commands', () => {
  /** An id of Discord has the time of its making. */
  let made = 0n;
  const idNow = () => String(((BigInt(Date.now()) - 1_420_070_400_000n) << 22n) + (made += 1n));
  const write = (content: string, member: object = {}, author: object = {}) => {
    const message = {
      ...{ id: idNow(), channel_id: '15', guild_id: GUILD, content, type: 0 },
      author: { id: '701', username: 'ada', global_name: 'Ada L', bot: false, ...author },
      member: { roles: [], premium_since: null, nick: null, ...member },
    };
    discord.say('MESSAGE_CREATE', message);
    return message.id;
  };
  const answers = () => discord.rest.posted.filter(({ channel_id }) => channel_id === '15');
  const make = (body: object) => owner.send('POST', '/v1/bot-commands', { response_type: 'text', ...body });

  const use = (name: string, token: string, permissions = '1024') =>
    discord.say('INTERACTION_CREATE', {
      ...{ type: 2, id: idNow(), token, application_id: '4242', guild_id: GUILD, channel_id: '15' },
      data: { id: '1', name, type: 1, options: [{ name: 'text', type: 3, value: '@bob' }] },
      member: { user: { id: '702', username: 'eve', global_name: null }, permissions, roles: [] },
    });
  const answerTo = (token: string) => eventually(async () => discord.rest.answers.get(token), `the answer of ${token}`);

  beforeAll(async () => {
    discord.rest.channels.get(GUILD)!.push({ id: '15', name: 'talk', type: 0, position: 4 });
    const roles = [
      { id: GUILD, permissions: '1024' },
      { id: '5', permissions: String(1 << 13) },
    ];
    discord.rest.guilds.set(GUILD, { owner_id: '700', roles });
    await eventually(async () => (discord.connected > 0 ? true : undefined), 'the session of the gateway');
    await make({ name: 'hug', response: '{{user}} hugs {{target}} in {{channel}} ({{count}})' });
    await make({ name: 'mods', response: 'mod', min_role: 'moderator' });
    await make({ name: 'boosts', response: 'boost', min_role: 'subscriber' });
    await make({ name: 'mine', response: 'owner', min_role: 'broadcaster' });
    await make({ name: 'slashed', response: 'no', discord_form: 'slash' });
    await make({ name: 'elsewhere', response: 'no', platforms: ['kick'] });
  });

  test('a message that names a command is answered once, as a reply that pings nobody', async () => {
    const id = write('!Hug @bob hello');
    const answer = await eventually(async () => answers()[0], 'the answer');
    expect(answer).toMatchObject({ content: `Ada L hugs bob in Guild ${GUILD} (1)`, reply_to: id });
    expect(answer.allowed_mentions).toMatchObject({ parse: [], replied_user: false });
  });

  test('roles are those of the server, and other messages are neither stored nor answered', async () => {
    const before = answers().length;
    for (const name of ['mods', 'boosts', 'mine', 'slashed', 'elsewhere', 'unknown']) write(`!${name}`);
    write('plain talk');
    write('!hug', {}, { bot: true });
    write('!mods', { roles: ['5'] });
    write('!boosts', { premium_since: '2026-01-01T00:00:00Z' });
    write('!mine', {}, { id: '700' });
    await eventually(async () => answers()[before + 2], 'the answers');
    const texts = answers().map(({ content }) => content);
    expect(texts.slice(before).sort()).toEqual(['boost', 'mod', 'owner']);
    const rows = `select 1 from platform_chat_messages where platform = 'discord'`;
    expect(await server.database!.db.query(rows)).toEqual([]);
  });

  test('a call without an answer is not repeated', async () => {
    const path = '/api/v10/channels/15/messages';
    const before = discord.asked(path);
    discord.fail({ path, status: 'cut' });
    write('!hug');
    await eventually(async () => (discord.asked(path) > before ? true : undefined), 'the call');
    write('!hug after');
    await eventually(async () => answers().find(({ content }) => content.includes('after')), 'the next answer');
    expect(discord.asked(path)).toBe(before + 2);
  });

  test('slash commands are registered, acknowledged and answered', async () => {
    await make({ name: 'Bad.Name', response: 'prefix only' });
    const registered = await eventually(async () => {
      const names = discord.rest.commands.get(GUILD)?.map(({ name }) => name);
      return names?.includes('slashed') === true ? names : undefined;
    }, 'the commands to be registered');
    expect(registered).toEqual(expect.arrayContaining(['hug', 'mods', 'slashed']));
    expect(registered).not.toContain('elsewhere');
    await eventually(async () => {
      const { slash_skipped } = (await owner.get(PATH)).body.data;
      return slash_skipped.includes('bad.name') ? true : undefined;
    }, 'the refused name to be shown');

    use('slashed', 'token-1');
    use('mods', 'token-2');
    use('mods', 'token-3', String(1 << 13));
    expect(await answerTo('token-1')).toEqual(['no']);
    expect(await answerTo('token-2')).toEqual(['You cannot use this command now.']);
    expect(await answerTo('token-3')).toEqual(['mod']);
    expect(discord.rest.acknowledged.map(({ type }) => type)).toEqual([5, 5, 5]);
  });

  test('a slash command that has ended is answered at once', async () => {
    const { id } = (await make({ name: 'ended', response: 'no' })).body.data;
    await owner.send('PATCH', `/v1/bot-commands/${id}`, { enabled: false });
    use('ended', 'token-disabled');
    expect(await answerTo('token-disabled')).toEqual(['You cannot use this command now.']);
    await owner.send('DELETE', `/v1/bot-commands/${id}`, undefined);
    use('ended', 'token-deleted');
    expect(await answerTo('token-deleted')).toEqual(['You cannot use this command now.']);
    const types = discord.rest.acknowledged.filter(({ token }) => token.endsWith('ed')).map(({ type }) => type);
    expect(types).toEqual([4, 4]);
  });

  test.each([
    ['disabled', (path: string) => owner.send('PATCH', path, { enabled: false })],
    ['deleted', (path: string) => owner.send('DELETE', path, undefined)],
  ])('waiting answers of a %s command: no text of it is sent, and interactions end', async (end, endCommand) => {
    const { db } = server.database!;
    const waiting = () =>
      db.query<{ owned: boolean }>(
        `select j.flags ? 'owner' as owned from graphile_worker._private_jobs j
         join graphile_worker._private_tasks t on t.id = j.task_id
         where t.identifier = 'answer-discord-command' and j.run_at > now() + interval '5 seconds' and j.attempts > 0`,
      );
    const { id } = (await make({ name: `late-${end}`, response: 'late' })).body.data;
    const before = answers().length;
    const token = `token-waits-${end}`;
    const [post, answer] = ['/api/v10/channels/15/messages', `/api/v10/webhooks/4242/${token}/messages/@original`];
    for (const path of [post, answer])
      discord.fail({ path, status: 429, body: { message: 'You are being rate limited.', retry_after: 15 } });
    write(`!late-${end}`);
    use(`late-${end}`, token);
    await eventually(async () => ((await waiting()).length === 2 ? true : undefined), 'both answers to wait');
    expect((await endCommand(`/v1/bot-commands/${id}`)).status).toBeLessThan(300);
    await eventually(async () => ((await waiting()).length === 1 ? true : undefined), 'the answer to be cancelled');
    expect(await waiting()).toEqual([{ owned: false }]);
    await db.query(`update graphile_worker._private_jobs set run_at = now() where run_at > now() and attempts > 0`);
    await db.query(`update discord_buckets set resets_at = now()`);
    expect(await answerTo(token)).toEqual(['You cannot use this command now.']);
    expect([answers().length, discord.asked(answer)]).toEqual([before, 2]);
  });

  test('a command starts its automation once for a message or an interaction, which is answered', async () => {
    const { id } = (await owner.send('POST', '/v1/automations', { name: 'One', enabled: true })).body.data;
    const nodes = [{ id: randomUUID(), type: 'trigger:bot_command', config: {} }];
    const graph = { revision: 0, nodes, edges: [] };
    expect((await owner.send('PUT', `/v1/automations/${id}/graph`, graph)).status).toBe(200);
    const made_command = await make({ name: 'go', response_type: 'automation', automation_id: id, cooldown_user: 60 });
    expect(made_command.status).toBe(201);
    const before = answers().length;
    write('!go now');
    write('!go again');
    use('go', 'token-4');
    use('go', 'token-5');
    expect(await answerTo('token-4')).toEqual(['Done.']);
    expect(await answerTo('token-5')).toEqual(['You cannot use this command now.']);
    const run = { trigger: 'trigger:bot_command', status: 'succeeded', event_id: null };
    const runs = await eventually(async () => {
      const { data } = (await owner.get(`/v1/automations/${id}/runs`)).body;
      return data.length >= 2 && data.every(({ status }: typeof run) => status === 'succeeded') ? data : undefined;
    }, 'the end of the runs');
    expect(runs).toMatchObject([run, run]);
    expect(answers()).toHaveLength(before);
  });
});
