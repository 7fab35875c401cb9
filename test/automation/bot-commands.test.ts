import { randomUUID } from 'node:crypto';
import pg from 'pg';
import { botCommandCount, botCommandCountStream } from '../../domain/automation/bot-command-counts';
import { argumentValues, commandIn, cutTo, expand, uptimeText } from '../../domain/automation/expansion';
import { createPostgresEventStore } from '../../engines/event-store/postgres/store';
import { createPostgresWakeups } from '../../engines/wakeups/postgres';
import { decider } from '../support/decider';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually, VendorCloud } from '../support/vendor-cloud';
import { FakeChatCloud } from '../vendors/chat-cloud';

describe('a template', () => {
  const values = { user: '{{args}}', args: 'a b', arg: { 1: 'a' }, empty: '' };
  const first = () => 0;

  test.each([
    ['{{user}} {{arg.1}} {{arg.2}} {{arg}} {{args}}', '{{args}} a   a b'],
    ['{{ user }} {user} {{}} {{a-b}}', '{{ user }} {user} {{}} {{a-b}}'],
    ['{{constructor}}{{arg.constructor}}{{user.length}}{{__proto__.a}}', ''],
    ['{{random:one, two}}{{random:}}', 'one'],
  ])('%s becomes %s', (template, text) => expect(expand(template, values, first)).toBe(text));

  test('a command is the first word, and texts are cut by characters', () => {
    expect(commandIn(' !Hug  @ada  hi ')).toEqual({ word: 'Hug', args: '@ada  hi' });
    expect([commandIn('say !hug'), commandIn('! hug')]).toEqual([null, null]);
    expect(argumentValues('@ada hi', 'bob')).toEqual({ args: '@ada hi', arg: { 1: '@ada', 2: 'hi' }, target: 'ada' });
    expect(argumentValues('', 'bob').target).toBe('bob');
    expect(cutTo('a😀b', 2)).toBe('a😀');
    expect([7_500_000, 63_000, 5_000].map(uptimeText)).toEqual(['2h 5m', '1m 3s', '5s']);
  });
});

test('a deleted command is not counted', () => {
  const given = decider(botCommandCount);
  const of = { command_id: 'c0', account_id: 'a' };
  const all = Array.from({ length: 1_000 }, (_, n) => ({
    ...{ type: 'bot_command_count:added' as const, command_id: `c${n}`, account_id: 'a' },
  }));
  const add = { type: 'bot_command_count:add', command_id: 'next', account_id: 'a' } as const;
  given(all).when(add).thenFails('TOO_MANY_COMMANDS');
  given(all)
    .when({ type: 'bot_command_count:add', ...of })
    .thenNothing();
  given([...all, { type: 'bot_command_count:removed', ...of }])
    .when(add)
    .then({ ...add, type: 'bot_command_count:added' });
});

const WEB = 'https://app.example';
let cloud: FakeChatCloud;
let server: TestServer;
let owner: ApiClient;
let stranger: ApiClient;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  server = await startServer({
    env: { ...cloud.env(), LUMIO_HOSTS__WEB: WEB, LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' },
  });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  stranger = new ApiClient(server.base_url, server.credentials.other.access_token);
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
});

const PATH = '/v1/bot-commands';
const make = async (body: object, path = PATH) => {
  const answer = await owner.send('POST', path, { response_type: 'text', response: 'Hi', ...body });
  return { status: answer.status, body: answer.body.data ?? answer.body };
};
const patch = async (id: string, body: object, path = PATH) => {
  const answer = await owner.send('PATCH', `${path}/${id}`, body);
  return { status: answer.status, body: answer.body.data ?? answer.body };
};
const remove = async (path: string, api = owner) => (await api.send('DELETE', path, undefined)).status;

describe('commands', () => {
  test('are made, listed, changed and deleted on both protocols', async () => {
    const made = await make({ name: '!Hello', alias: 'hi', description: 'Greets' });
    expect(made).toMatchObject({
      status: 201,
      body: {
        ...{ name: 'Hello', alias: 'hi', description: 'Greets', response_type: 'text', response: 'Hi' },
        ...{ platforms: ['twitch', 'youtube', 'kick', 'trovo', 'discord'], min_role: 'everyone', enabled: true },
        ...{ cooldown_global: 0, cooldown_user: 0, discord_form: 'both', use_count: 0, override: null },
        account_id: server.credentials.account_id,
      },
    });
    const { id } = made.body;
    expect((await owner.get(`${PATH}/${id}`)).body.data).toMatchObject({ id, name: 'Hello' });
    const { data } = await owner.gql('{ botCommands { total items { id name useCount override { enabled } } } }');
    expect(data.botCommands).toEqual({ total: 1, items: [{ id, name: 'Hello', useCount: 0, override: null }] });
    const changed = await patch(id, { alias: null, platforms: ['kick', 'kick'], description: '' });
    expect(changed).toMatchObject({ status: 200, body: { alias: null, platforms: ['kick'], description: null } });
    expect((await stranger.get(PATH)).body._meta.total).toBe(0);
    expect((await stranger.get(`${PATH}/${id}`)).status).toBe(404);
    expect((await stranger.send('PATCH', `${PATH}/${id}`, { name: 'x' })).status).toBe(404);
    const started = (await owner.send('POST', '/v1/automations', { name: 'By command' })).body.data;
    const starting = await make({ name: 'start', response_type: 'automation', automation_id: started.id });
    const foreign = await stranger.send('PATCH', `${PATH}/${starting.body.id}`, { automation_id: 'no id' });
    expect([starting.status, foreign.status, await remove(`${PATH}/${starting.body.id}`)]).toEqual([201, 404, 204]);
    await remove(`/v1/automations/${started.id}`);
    expect([await remove(`${PATH}/${id}`, stranger), await remove(`${PATH}/${id}`)]).toEqual([404, 204]);
    expect(await remove(`${PATH}/${id}`)).toBe(404);
  });

  test('a name or alias is taken once without case, and free again afterwards', async () => {
    const first = await make({ name: 'Song', alias: 'Track' });
    const second = await make({ name: 'other' });
    for (const body of [{ name: 'TRACK' }, { name: 'x', alias: 'song' }])
      expect(await make(body)).toMatchObject({ status: 409, body: { error: 'CONFLICT' } });
    expect(await patch(second.body.id, { alias: 'track' })).toMatchObject({ status: 409 });
    // A refused command holds nothing; equal name and alias are one.
    const third = await make({ name: 'x', alias: 'X' });
    expect(third.status).toBe(201);
    expect((await patch(first.body.id, { name: 'track', alias: null })).status).toBe(200);
    expect((await patch(second.body.id, { alias: 'song' })).status).toBe(200);
    expect((await patch(third.body.id, { alias: null })).status).toBe(200);
    expect(await make({ name: 'y', alias: 'x' })).toMatchObject({ status: 409 });
    for (const { body } of [first, second, third]) await remove(`${PATH}/${body.id}`);
    const again = await make({ name: 'song', alias: 'track' });
    expect(again.status).toBe(201);
    await remove(`${PATH}/${again.body.id}`);
  });

  test.each([
    [{ name: '!' }, 400],
    [{ name: 'a b' }, 400],
    [{ name: 'a'.repeat(51) }, 400],
    [{ name: 'n', response: null }, 400],
    [{ name: 'n', response: 'x'.repeat(2001) }, 400],
    [{ name: 'n', platforms: [] }, 400],
    [{ name: 'n', cooldown_user: 86_401 }, 400],
    [{ name: 'n', cooldown_user: 0.5 }, 400],
    [{ name: 'n', response_type: 'automation' }, 400],
    [{ name: 'n', response_type: 'automation', automation_id: 'no id' }, 400],
    [{ name: 'n', response_type: 'automation', automation_id: randomUUID() }, 404],
  ])('%j is answered with %i', async (body, status) => {
    expect((await make(body)).status).toBe(status);
    expect((await owner.get(PATH)).body._meta.total).toBe(0);
  });

  test('one Idempotency-Key makes one command', async () => {
    const body = { name: 'once', response_type: 'template', response: 'Hi', automation_id: 'ignored' };
    const once = () => owner.send('POST', PATH, body, { 'idempotency-key': 'once' });
    const [first, second] = [await once(), await once()];
    expect([second.status, second.body]).toEqual([201, first.body]);
    await remove(`${PATH}/${first.body.data.id}`);
  });

  test('concurrent calls make no more than 1,000 commands', async () => {
    const { url } = server.database!;
    const { account_id } = server.credentials.other;
    const pool = new pg.Pool({ connectionString: url, max: 1 });
    const wakeups = createPostgresWakeups({ url });
    const store = await createPostgresEventStore({ pool, wakeups });
    const events = Array.from({ length: 999 }, () => ({
      ...{ id: randomUUID(), type: 'bot_command_count:added', data: { command_id: randomUUID(), account_id } },
    }));
    await store.append([{ stream: botCommandCountStream(account_id), expected: 'none', events }], { account_id });
    await store.close();
    await wakeups.close();
    await pool.end();

    const insert = `insert into bot_commands (id, account_id, name, name_key, response_type, platforms, min_role,
        cooldown_global, cooldown_user, discord_form, enabled, created_at, updated_at)
      values (gen_random_uuid(), $1, 'old', 'old', 'text', '{}', 'everyone', 0, 0, 'both', true, now(), now())`;
    // A command from before commands were counted.
    await server.database!.db.query(insert, [account_id]);
    expect((await stranger.send('POST', PATH, { name: 'more', response_type: 'text', response: 'Hi' })).status).toBe(
      409,
    );
    await server.database!.db.query(`delete from bot_commands where account_id = $1 and name_key = 'old'`, [
      account_id,
    ]);

    const post = (name: string) =>
      stranger.send('POST', PATH, { name, response_type: 'text', response: 'Hi' }, { 'idempotency-key': name });
    const both = await Promise.all([post('one'), post('two')]);
    expect(both.map(({ status }) => status).sort()).toEqual([201, 409]);
    const [made] = both.filter(({ status }) => status === 201);
    // The last one again: it is counted once.
    expect((await post(made!.body.data.name)).body).toEqual(made!.body);
    expect(await remove(`${PATH}/${made!.body.data.id}`, stranger)).toBe(204);
    const third = await post('three');
    expect(third.status).toBe(201);
    expect(await remove(`${PATH}/${third.body.data.id}`, stranger)).toBe(204);
  });

  test('operators make commands of all accounts, which accounts override', async () => {
    const GLOBAL = '/v1/admin/bot-commands';
    expect((await stranger.send('POST', GLOBAL, { name: 'no' })).status).toBe(403);
    const made = await make({ name: 'rules', min_role: 'subscriber' }, GLOBAL);
    expect(made).toMatchObject({ status: 201, body: { account_id: null, name: 'rules' } });
    const { id } = made.body;
    // The namespace of accounts is another one.
    const own = await make({ name: 'rules' });
    expect(own.status).toBe(201);
    expect((await stranger.get(PATH)).body.data).toMatchObject([{ id, account_id: null, override: null }]);
    expect(await patch(id, { name: 'mine' })).toMatchObject({ status: 403 });
    expect(await remove(`${PATH}/${id}`)).toBe(403);
    const listed = async (scope: string) =>
      (await owner.get(`${GLOBAL}?scope=${scope}`)).body.data.map((one: { id: string }) => one.id);
    expect([await listed('global'), await listed('account')]).toEqual([[id], [own.body.id]]);

    const override = (body: object, of = id) => owner.send('PUT', `${PATH}/${of}/override`, body);
    expect((await override({ min_role: 'follower' })).status).toBe(400);
    expect((await override({ enabled: false }, own.body.id)).status).toBe(404);
    expect((await override({ min_role: 'moderator', response: 'Mine' })).body.data).toMatchObject({
      response: 'Hi',
      override: { response: 'Mine', platforms: null, min_role: 'moderator', cooldown_user: null, enabled: null },
    });
    expect((await stranger.get(`${PATH}/${id}`)).body.data).toMatchObject({ override: null });
    const replaced = await owner.gql(
      `mutation { setBotCommandOverride(id: "${id}", input: { enabled: false }) { override { response enabled } } }`,
    );
    expect(replaced.data.setBotCommandOverride).toEqual({ override: { response: null, enabled: false } });
    expect([await remove(`${PATH}/${id}/override`), await remove(`${PATH}/${id}/override`)]).toEqual([204, 404]);
    expect((await patch(own.body.id, { name: 'mine' }, GLOBAL)).body).toMatchObject({ name: 'mine' });
    expect([await remove(`${GLOBAL}/${own.body.id}`), await remove(`${GLOBAL}/${id}`)]).toEqual([204, 204]);
  });
});

describe('lines of a chat', () => {
  let vendors: VendorCloud;
  let kick: number;
  const KICK_CHAT = '/public/v1/chat';
  beforeAll(async () => {
    vendors = new VendorCloud(server.base_url, server.credentials);
    kick = Number(server.credentials.connections.kick.platform_channel_id);
    const begun = await owner.send('POST', '/v1/connections/oauth/kick/start', { kind: 'bot', return_to: WEB });
    const { code, state } = cloud.login(begun.body.authorize_url, '555');
    expect((await owner.send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
  });
  beforeEach(() => void (cloud.sent.length = 0));

  interface Said {
    user_id?: number;
    badges?: string[];
    at?: string;
    message_id?: string;
  }
  async function say(content: string, { user_id = 42, badges = [], at, message_id = randomUUID() }: Said = {}) {
    const created_at = at ?? new Date().toISOString();
    const body = {
      message_id,
      broadcaster: { user_id: kick, username: 'b', channel_slug: 'b' },
      sender: {
        ...{ user_id, username: `Name ${user_id}`, channel_slug: `name-${user_id}` },
        identity: { username_color: '#ffffff', badges: badges.map((type) => ({ type, text: type })) },
      },
      content,
      emotes: null,
      created_at,
    };
    const posted = await vendors.kick('chat.message.sent', Buffer.from(JSON.stringify(body)), message_id, created_at);
    expect(posted.status).toBe(200);
    return message_id;
  }
  const answers = () => cloud.sent.map(({ body }) => body['content'] as string);
  /** Waits for the answer of a last line: lines before it are decided then. */
  async function settled(last: string): Promise<string[]> {
    await say('!last');
    await eventually(async () => (answers().includes(last) ? true : undefined), 'the last answer');
    await eventually(
      async () =>
        (
          await server.database!.db.query(`select 1 from graphile_worker._private_jobs j
           join graphile_worker._private_tasks t on t.id = j.task_id
           where t.identifier in ('answer-bot-command', 'look-up-bot-follower')`)
        ).length === 0
          ? true
          : undefined,
      'no waiting answer',
    );
    return answers().filter((text) => text !== last);
  }
  let made: string[] = [];
  const having = async (...commands: object[]) => {
    for (const one of [{ name: 'last', response: 'last' }, ...commands]) {
      const { status, body } = await make(one);
      expect(status).toBe(201);
      made.push(body.id);
    }
  };
  afterEach(async () => {
    for (const id of made) await remove(`${PATH}/${id}`);
    made = [];
  });

  test('are answered once, as a reply, with the values of the line', async () => {
    const response = '{{user}} hugs {{target}} ({{count}}, {{platform}}){{uptime}}{{song}}';
    await having({ name: 'Hug', alias: 'h', response });
    const message_id = await say('!hUG @ada', { message_id: 'line-1' });
    // Delivered again by Kick.
    await say('!hUG @ada', { message_id: 'line-1' });
    await say('!H');
    await say('look: !hug');
    expect((await settled('last')).sort()).toEqual(['Name 42 hugs Name 42 (2, kick)', 'Name 42 hugs ada (1, kick)']);
    const [first] = cloud.sent.filter(({ body }) => body['content'].includes('ada'));
    expect(first).toMatchObject({
      owner: '555',
      body: { broadcaster_user_id: kick, type: 'user', reply_to_message_id: message_id },
    });
    expect((await owner.get(`${PATH}/${made[1]}`)).body.data).toMatchObject({ use_count: 2 });
  });

  test('of bots, of a weaker role, within a cooldown, or too old have no answer', async () => {
    await having(
      { name: 'mods', response: 'mods', min_role: 'moderator' },
      { name: 'slow', response: 'slow {{user}} {{count}}', cooldown_user: 60 },
      { name: 'follows', response: 'follows {{user}}', min_role: 'follower' },
      { name: 'elsewhere', response: 'no', platforms: ['twitch'] },
      { name: 'off', response: 'no', enabled: false },
    );
    await say('!mods');
    await say('!mods', { badges: ['moderator'] });
    await say('!mods', { user_id: kick });
    await say('!slow');
    await say('!slow');
    await say('!slow', { user_id: 43 });
    await say('!slow', { user_id: 555 });
    await say('!elsewhere');
    await say('!off');
    await say('!slow', { user_id: 44, at: new Date(Date.now() - 40_000).toISOString() });
    await say('!follows', { user_id: 45 });
    await vendors.kickFollow(46);
    await eventually(
      async () => ((await owner.get('/v1/events?types=kick:follower')).body.data.length > 0 ? true : undefined),
      'the follow',
    );
    await say('!follows', { user_id: 46 });
    expect((await settled('last')).sort()).toEqual(
      ['mods', 'mods', 'slow Name 42 1', 'slow Name 43 2', 'follows Name 46'].sort(),
    );
  });

  test("of a global command are answered as the account overrides it; the account's own wins while disabled", async () => {
    const { body: global } = await make({ name: 'faq', response: 'global' }, '/v1/admin/bot-commands');
    await having();
    await say('!faq');
    expect(await settled('last')).toEqual(['global']);
    await owner.send('PUT', `${PATH}/${global.id}/override`, { response: 'ours {{count}}', min_role: 'vip' });
    cloud.sent.length = 0;
    await say('!faq');
    await say('!faq', { badges: ['vip'] });
    expect(await settled('last')).toEqual(['ours 2']);
    const { body: own } = await make({ name: 'other', alias: 'faq', enabled: false });
    made.push(own.id);
    cloud.sent.length = 0;
    await say('!faq', { badges: ['vip'] });
    expect(await settled('last')).toEqual([]);
    expect((await owner.get('/v1/admin/bot-commands')).body.data).toMatchObject([{ id: global.id, use_count: 2 }]);
    expect(await remove(`/v1/admin/bot-commands/${global.id}`)).toBe(204);
  });

  test('a limit is tried again, a cut answer never', async () => {
    await having({ name: 'limited', response: 'limited' }, { name: 'cut', response: 'cut' });
    cloud.fail({ path: KICK_CHAT, status: 429 });
    await say('!limited');
    await eventually(async () => (answers().includes('limited') ? true : undefined), 'the answer');
    cloud.fail({ path: KICK_CHAT, status: 'cut' });
    const calls = cloud.calls.filter(({ path }) => path === KICK_CHAT).length;
    await say('!cut');
    await eventually(
      async () =>
        (await server.database!.db.query(`select 1 from chat_sends where status = 'unknown'`)).length === 1
          ? true
          : undefined,
      'the unknown outcome',
    );
    expect(await settled('last')).toEqual(['limited']);
    // The cut call, and the last one.
    expect(cloud.calls.filter(({ path }) => path === KICK_CHAT)).toHaveLength(calls + 2);
  });

  test.each([
    ['disabled', (id: string) => patch(id, { enabled: false }).then(({ status }) => status)],
    ['deleted', (id: string) => remove(`${PATH}/${id}`)],
  ])('a waiting answer of a %s command is not sent', async (_end, endCommand) => {
    await having({ name: 'late', response: 'late' });
    const jobs = (condition: string) =>
      server.database!.db.query(
        `select 1 as one from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
         where t.identifier = 'answer-bot-command' and ${condition}`,
      );
    cloud.fail({ path: KICK_CHAT, status: 429, times: 100 });
    await say('!late');
    const waits = 'j.attempts > 0 and j.locked_at is null';
    await eventually(async () => ((await jobs(waits)).length === 1 ? true : undefined), 'the answer to wait');
    const id = made.pop()!;
    expect(await endCommand(id)).toBeLessThan(300);
    await eventually(async () => ((await jobs('true')).length === 0 ? true : undefined), 'the end of the answer');
    cloud.heal();
    expect(await settled('last')).toEqual([]);
    await remove(`${PATH}/${id}`);
  });

  test('a paused bot, and an account without the feature, answer nothing', async () => {
    await having({ name: 'paused', response: 'paused' });
    const toggle = (enabled: boolean) => owner.send('POST', '/v1/bot-toggle', { platform: 'kick', enabled });
    const bots = (enabled: boolean | null) =>
      owner.send('PATCH', `/v1/admin/accounts/${server.credentials.account_id}/overrides`, {
        features: [{ key: 'feature:bots', enabled }],
      });
    expect((await toggle(false)).status).toBe(200);
    await say('!paused');
    await untilRead();
    await toggle(true);
    expect((await bots(false)).status).toBe(200);
    await say('!paused');
    await untilRead();
    expect((await owner.get(PATH)).status).toBe(403);
    await bots(null);
    await bots(true);
    expect(await settled('last')).toEqual([]);
  });

  test('an account that may have no bot of its own speaks by the bot of the installation, and connects none', async () => {
    await having({ name: 'who', response: 'who' });
    const allow = (custom_bot_allowed: boolean | null) =>
      owner.send('PATCH', `/v1/admin/accounts/${server.credentials.account_id}/overrides`, { custom_bot_allowed });
    const start = (kind: string, platform = 'kick') =>
      owner.send('POST', `/v1/connections/oauth/${platform}/start`, { kind, return_to: WEB });
    expect((await allow(false)).body.data).toMatchObject({ custom_bot_allowed: false });
    expect(await start('bot')).toMatchObject({ status: 403, body: { error: 'FEATURE_DISABLED' } });
    expect((await start('bot', 'discord')).status).toBe(200);
    const shown = async () =>
      (await owner.get('/v1/bot-status')).body.data.find((one: { platform: string }) => one.platform === 'kick').bot;
    expect(await shown()).toBe('none');
    await say('!who');
    await untilRead();
    const begun = await start('system_bot');
    const { code, state } = cloud.login(begun.body.authorize_url, '556');
    expect((await owner.send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
    await say('!who', { user_id: 555 });
    await say('!who', { user_id: 556 });
    await say('!who', { user_id: 43 });
    expect(await settled('last')).toEqual(['who']);
    expect([cloud.sent.map(({ owner: by }) => by), await shown()]).toEqual([['556', '556'], 'system']);
    expect((await allow(null)).body.data).toMatchObject({ custom_bot_allowed: null });
    expect((await start('bot')).status).toBe(200);
  });

  test('modules are configured, limited by their flag, and timed messages come in turn while a channel is live', async () => {
    const MODULE = '/v1/bot-modules/timed_messages';
    const { account_id } = server.credentials;
    const ADMIN = `/v1/admin/accounts/${account_id}/bot-modules`;
    const { db } = server.database!;
    const DEFAULTS = { name: 'timed_messages', enabled: false, config: {}, exempt_roles: [] };
    expect((await owner.get('/v1/bot-modules')).body.data).toMatchObject([
      { name: 'link_protection' },
      { name: 'spam_protection' },
      { name: 'word_filter' },
      DEFAULTS,
    ]);
    for (const body of [{ config: { interval_seconds: 59 } }, { config: { words: [] } }, { exempt_roles: ['nobody'] }])
      expect(await owner.send('PUT', MODULE, body)).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
    expect((await owner.send('PUT', '/v1/bot-modules/other', { enabled: true })).status).toBe(400);
    const config = { messages: ['one {{platform}}{{user}}', 'two'], interval_seconds: 60 };
    expect((await owner.send('PUT', MODULE, { config })).body.data).toMatchObject({ enabled: false, config });
    const puts = Array.from({ length: 4 }, (_, n) => owner.send('PUT', MODULE, { enabled: n % 2 === 1 }));
    expect((await Promise.all(puts)).map(({ status }) => status)).toEqual([200, 200, 200, 200]);
    const on = await owner.gql(
      'mutation { updateBotModule(name: "timed_messages", enabled: true) { enabled config } }',
    );
    expect(on.data.updateBotModule).toEqual({ enabled: true, config });
    expect((await stranger.get(MODULE)).body.data).toMatchObject(DEFAULTS);
    expect((await owner.get(ADMIN)).body.data[3]).toMatchObject({ enabled: true, config });
    expect((await stranger.get(ADMIN)).status).toBe(403);

    // Three times were missed together.
    const due = async () => {
      await eventually(
        async () => ((await db.query('select 1 from account_schedules')).length === 1 ? true : undefined),
        'the schedule',
      );
      await db.query(`update account_schedules set next_due_at = now() - interval '3 minutes'`);
      await eventually(
        async () =>
          (
            await db.query(
              `select 1 from account_schedules s where s.next_due_at > now() and not exists (
               select from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
               where t.identifier in ('start-timed-messages', 'send-timed-message'))`,
            )
          ).length === 1
            ? true
            : undefined,
        'the due messages',
        60_000,
      );
    };
    cloud.sent.length = 0;
    await due();
    expect(answers()).toEqual([]);
    await db.query(
      `insert into channel_status (account_id, platform, broadcast_id, channel_id, is_online, updated_at)
       values ($1, 'kick', 'b-1', $2, true, now())`,
      [account_id, String(kick)],
    );
    for (let n = 0; n < 3; n += 1) await due();
    expect(answers()).toEqual(['one kick', 'two', 'one kick']);
    await owner.send('PUT', MODULE, { config: { ...config, min_chat_lines: 1 } });
    await due();
    expect(answers()).toHaveLength(3);

    const flag = (enabled: boolean) =>
      owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
        features: [{ key: 'bot_module:timed_messages', enabled }],
      });
    await flag(false);
    expect(await owner.send('PUT', MODULE, { enabled: true })).toMatchObject({
      status: 403,
      body: { error: 'FEATURE_DISABLED' },
    });
    await owner.send('PUT', `${ADMIN}/timed_messages`, { config });
    await due();
    expect(answers()).toHaveLength(3);
    await flag(true);
    expect([await remove(MODULE), await remove(MODULE)]).toEqual([204, 204]);
    expect((await owner.get(MODULE)).body.data).toMatchObject(DEFAULTS);
    await eventually(
      async () => ((await db.query('select 1 from account_schedules')).length === 0 ? true : undefined),
      'the end of the schedule',
    );
  });

  test('modules act on lines once, the strongest first, spare the exempt, and stop with their flag', async () => {
    const { account_id } = server.credentials;
    const MODULES = '/v1/bot-modules';
    const put = (name: string, body: object) => owner.send('PUT', `${MODULES}/${name}`, body);
    for (const [name, config] of [
      ['link_protection', { allowed_domains: ['co.uk'] }],
      ['spam_protection', { max_caps_percent: 101 }],
      ['word_filter', { patterns: ['('] }],
      ['word_filter', { allowed_domains: [] }],
    ] as const)
      expect(await put(name, { config })).toMatchObject({ status: 400, body: { error: 'VALIDATION_ERROR' } });
    const links = { allowed_domains: ['example.com'], action: 'timeout' };
    const protect = await put('link_protection', { enabled: true, config: links, exempt_roles: ['vips'] });
    expect(protect.body.data).toMatchObject({ config: links, exempt_roles: ['vips'] });
    const words = { words: ['darn'], action: 'warn', warning_text: 'Mind it' };
    expect((await put('word_filter', { enabled: true, config: words })).status).toBe(200);
    expect((await put('spam_protection', { enabled: true, config: { max_emotes: 0 } })).status).toBe(200);
    cloud.sent.length = cloud.acts.length = 0;

    await having({ name: 'echo', response: '{{args}} {{user}} {{target}} darn' });
    await say('!echo darn {{user}}', { badges: ['moderator'] });
    await say('see sub.example.com');
    await say('see evil.com', { badges: ['vip'] });
    await say('darn evil.com', { badges: ['moderator'] });
    await say('darn evil.com', { user_id: kick });
    await say('darn evil.com', { user_id: 555 });
    await say('evil.com', { user_id: 47, at: new Date(Date.now() - 40_000).toISOString() });
    const linked = await say('d\u0430rn evil.com', { user_id: 47, message_id: 'line-2' });
    await say('d\u0430rn evil.com', { user_id: 47, message_id: 'line-2' });
    const warned = [];
    for (let n = 0; n < 3; n += 1) warned.push(await say('DARN it', { user_id: 48 }));
    const deleted = () => cloud.acts.map(({ route }) => route.split('/').at(-1)!).sort();
    await eventually(
      async () => (deleted().length === 2 && answers().length === 3 ? true : undefined),
      'the acts of modules',
    );
    expect(await settled('last')).toEqual(
      expect.arrayContaining(['*** {{user}} Name 42 *** darn', 'Mind it', 'Mind it']),
    );
    expect(deleted()).toEqual([linked, warned[2]].sort());
    const warnings = cloud.sent.filter(({ body }) => body['content'] === 'Mind it');
    expect(warnings.map(({ body }) => body['reply_to_message_id']).sort()).toEqual(warned.slice(0, 2).sort());
    const log = await eventually(async () => {
      const { data } = (await owner.get('/v1/chat/moderation-log')).body;
      return data.length >= 4 ? data : undefined;
    }, 'the entries of the log');
    const noted = log.map((entry: Record<string, unknown>) => `${String(entry['action'])}: ${String(entry['reason'])}`);
    expect(noted.sort()).toEqual([
      'delete: Link protection: delete, because timeout is not possible here',
      'delete: Word filter',
      'warn: Word filter',
      'warn: Word filter',
    ]);
    const { db } = server.database!;
    const kept = 'select status, count(*)::int as n from bot_module_acts group by 1 order by 1';
    expect(await db.query(kept)).toEqual([{ status: 'done', n: 4 }]);
    const audited = await db.query(`select metadata ->> 'actor_id' as actor from domain_events
      where type = 'chat:moderated' order by 1`);
    expect(audited).toEqual([{ actor: 'bot_module:link_protection' }, { actor: 'bot_module:word_filter' }]);

    const flag = (enabled: boolean) =>
      owner.send('PATCH', `/v1/admin/accounts/${account_id}/overrides`, {
        features: [{ key: 'bot_module:link_protection', enabled }],
      });
    await flag(false);
    cloud.fail({ path: '/public/v1/chat', status: 'cut' });
    await say('DARN it', { user_id: 50 });
    const done = { status: 'done', n: 4 };
    await eventually(
      async () => (await db.query(kept)).find(({ status }) => status === 'unknown'),
      'the unanswered warning',
    );
    expect((await put('link_protection', { enabled: false })).status).toBe(403);
    await say('evil.com', { user_id: 49 });
    await settled('last');
    expect(await db.query(kept)).toEqual([done, { status: 'unknown', n: 1 }]);
    await flag(true);
    for (const name of ['link_protection', 'spam_protection', 'word_filter'])
      expect(await remove(`${MODULES}/${name}`)).toBe(204);
  });

  /** Waits until the bot has read all lines. */
  const untilRead = () =>
    eventually(async () => {
      const behind = await server.database!.db.query(
        `select 1 from broker_topics t join broker_partitions p on p.topic_id = t.topic_id
           left join checkpoints c on c.projection = 'chat-bot' and c.source = t.topic and c.partition = p.partition
         where t.topic = 'chat-events' and coalesce(c.position, '0')::bigint < p.next_offset`,
      );
      return behind.length === 0 ? true : undefined;
    }, 'the lines to be read');
});

test('operators change no command of a dissolved account', async () => {
  const made = await stranger.send('POST', PATH, { name: 'left', response_type: 'text', response: 'Hi' });
  const { id } = made.body.data;
  const { account_id } = server.credentials.other;
  const [account] = await server.database!.db.query<{ name: string }>('select name from accounts where id = $1', [
    account_id,
  ]);
  const dissolved = await stranger.send('DELETE', `/v1/accounts/${account_id}`, { confirm_name: account!.name });
  expect(dissolved.status).toBe(200);
  const path = `/v1/admin/bot-commands/${id}`;
  await eventually(
    async () => ((await owner.send('PATCH', path, { response: 'x' })).status === 404 ? true : undefined),
    'the end of the account',
  );
  expect(await remove(path)).toBe(404);
});
