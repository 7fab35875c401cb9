import pg from 'pg';
import { ANSWER_COMMAND } from '../../../domain/automation/command-answers';
import { ANSWER_DISCORD_COMMAND } from '../../../domain/automation/discord-commands';
import { ACT_ON_LINE } from '../../../domain/automation/modules/module-acts';
import { POST_TO_DISCORD } from '../../../domain/connections/discord-posts';
import { startServer, type TestServer } from '../../support/server';
import { ApiClient, eventually, VendorCloud } from '../../support/vendor-cloud';
import { FakeChatCloud } from '../../vendors/chat-cloud';
import { FakeDiscord } from '../../vendors/discord-cloud';

const WEB = 'https://app.example';
const GUILD = '9001';
const BOT_TOKEN = 'discord-bot-token';
const KICK_CHAT = '/public/v1/chat';
/** Channels for answers, and for the mirror of chats. */
const [TALK, MIRROR] = ['15', '16'] as const;
const TALK_POSTS = `/api/v10/channels/${TALK}/messages`;
/** A killed process's jobs are released within 40 s. */
const RELEASED_MS = 120_000;

let cloud: FakeChatCloud;
let discord: FakeDiscord;
let server: TestServer;
beforeAll(async () => {
  cloud = await new FakeChatCloud().start();
  discord = await new FakeDiscord().start();
  discord.bot_tokens.add(BOT_TOKEN);
  discord.rest.channels.set(
    GUILD,
    [TALK, MIRROR].map((id, position) => ({ id, name: `c${id}`, type: 0, position })),
  );
  discord.rest.guilds.set(GUILD, { owner_id: '700', roles: [{ id: GUILD, permissions: '1024' }] });
  server = await startServer({
    env: {
      ...cloud.env(),
      LUMIO_HOSTS__WEB: WEB,
      LUMIO_DISCORD__BOT_TOKEN: BOT_TOKEN,
      LUMIO_DISCORD__API_URL: discord.base_url,
    },
  });
  const begun = await api().send('POST', '/v1/connections/oauth/kick/start', { kind: 'bot', return_to: WEB });
  const { code, state } = cloud.login(begun.body.authorize_url, '555');
  expect((await api().send('POST', '/v1/connections/oauth/kick/exchange', { code, state })).status).toBe(200);
  const { body } = await api().send('POST', '/v1/discord-guilds/authorize', { return_to: WEB });
  const added = { code: discord.tokens.code(GUILD, ['bot', 'applications.commands']), state: body.state };
  expect((await api().send('POST', '/v1/connections/oauth/discord/exchange', added)).status).toBe(200);
  await eventually(async () => (discord.connected > 0 ? true : undefined), 'the session of the gateway');
});
afterAll(async () => {
  await server?.dispose();
  await cloud?.close();
  await discord?.close();
});

const api = () => new ApiClient(server.base_url, server.credentials.access_token);
const say = (content: string, user_id: number, message_id?: string) =>
  new VendorCloud(server.base_url, server.credentials).kickLine(content, {
    user_id,
    ...(message_id && { message_id }),
  });
let made = 0n;
const write = (content: string, user_id: string) =>
  discord.say('MESSAGE_CREATE', {
    id: String(((BigInt(Date.now()) - 1_420_070_400_000n) << 22n) + (made += 1n)),
    ...{ channel_id: TALK, guild_id: GUILD, content, type: 0, member: { roles: [] } },
    author: { id: user_id, username: `u${user_id}`, global_name: null },
  });
const calls = () => [cloud.asked(KICK_CHAT), discord.asked(TALK_POSTS)];

const JOBS = [ANSWER_COMMAND, ANSWER_DISCORD_COMMAND, ACT_ON_LINE, POST_TO_DISCORD];
const jobs = (condition = 'true') =>
  server.database!.db.query<{ name: string }>(
    `select t.identifier as name from graphile_worker._private_jobs j
     join graphile_worker._private_tasks t on t.id = j.task_id
     where t.identifier = any($1) and ${condition} order by 1`,
    [JOBS],
  );
const noJobs = () =>
  eventually(async () => ((await jobs()).length === 0 ? true : undefined), 'the end of all jobs', RELEASED_MS);

/** Keeps every process from writing rows of these tables until the returned function is called. */
async function held(...tables: string[]): Promise<() => Promise<void>> {
  const client = new pg.Client({ connectionString: server.database!.url });
  await client.connect();
  await client.query(`begin; lock table ${tables.join(', ')} in share mode`);
  return () => client.end();
}

const statuses = async () => {
  const { db } = server.database!;
  const of = (table: string) => db.query<{ status: string }>(`select status from ${table} order by asked_at`);
  return [await of('chat_sends'), await of('discord_posts')].map((rows) => rows.at(-1)?.status ?? null);
};

const FREE = async () => undefined;
test.each([
  {
    moment: 'before the call',
    hold: () => held('chat_sends', 'discord_posts'),
    reached: async () => {
      const waiting = `select 1 from pg_locks where not granted and relation in
        ('chat_sends'::regclass, 'discord_posts'::regclass)`;
      return (await server.database!.db.query(waiting)).length >= 2;
    },
    called: 0,
    // The row for Discord is written by a statement of its own, which ends when its lock is free.
    stored: [null, 'unknown'],
  },
  {
    moment: 'before the answer of the platform',
    async hold() {
      cloud.fail({ path: KICK_CHAT, status: 'hang' });
      discord.fail({ path: TALK_POSTS, status: 'hang' });
      return FREE;
    },
    reached: async () => true,
    called: 1,
    stored: ['unknown', 'unknown'],
  },
  {
    moment: 'before the end of the job',
    hold: () => held('finished_jobs'),
    reached: async () => (await statuses()).every((status) => status === 'sent'),
    called: 1,
    stored: ['sent', 'sent'],
  },
])(
  'a kill $moment doubles no answer, count or cooldown',
  async ({ moment, hold, reached, called, stored }) => {
    const name = moment.replaceAll(' ', '-');
    const command = { name, response_type: 'text', response: `${name} {{user}} {{count}}`, cooldown_user: 3_600 };
    const { id } = (await api().send('POST', '/v1/bot-commands', command)).body.data;
    await server.database!.db.query('delete from chat_sends');
    await server.database!.db.query('delete from discord_posts');
    const before = calls();
    const free = await hold();
    const line = await say(`!${name}`, 42);
    write(`!${name}`, '701');
    await eventually(
      async () =>
        calls().every((count, at) => count === before[at]! + called) && (await reached()) ? true : undefined,
      'the moment of the kill',
    );
    await server.kill();
    await free();
    server = await server.restart();
    // Delivered again, and used again within the cooldown.
    await say(`!${name}`, 42, line);
    await say(`!${name}`, 42);
    await noJobs();
    expect(calls()).toEqual(before.map((count) => count + called));
    expect(await statuses()).toEqual(stored);
    write(`!${name}`, '701');
    write(`!${name}`, '702');
    await say(`!${name}`, 43);
    await eventually(
      async () => (calls().every((count, at) => count === before[at]! + called + 1) ? true : undefined),
      'the answers to others',
    );
    await noJobs();
    expect(calls()).toEqual(before.map((count) => count + called + 1));
    const texts = [cloud.sent.at(-1)!.body['content'], discord.rest.textOf(TALK).at(-1)];
    expect(texts.map((text) => /\d+$/.exec(String(text))?.[0]).sort()).toEqual(['3', '4']);
    expect((await api().get(`/v1/bot-commands/${id}`)).body.data).toMatchObject({ use_count: 4 });
  },
  RELEASED_MS * 3,
);

test('after an outage of an hour no answer, post or act of before is carried out', async () => {
  const { db } = server.database!;
  await api().send('POST', '/v1/bot-commands', { name: 'late', response_type: 'text', response: 'late' });
  const words = { enabled: true, config: { words: ['darn'], action: 'delete' } };
  expect((await api().send('PUT', '/v1/bot-modules/word_filter', words)).status).toBe(200);
  const mirror = `/v1/discord-guilds/${GUILD}/channels/chat_mirror`;
  expect((await api().send('PUT', mirror, { channel_id: MIRROR })).status).toBe(200);
  const limited = { status: 429, times: 10_000, body: { message: 'limited', retry_after: 5 } };
  cloud.fail({ path: KICK_CHAT, ...limited });
  discord.fail({ path: '/api/v10/channels/', ...limited });
  await say('!late', 60);
  await say('darn', 61);
  write('!late', '703');
  const waiting = await eventually(async () => {
    const some = await jobs('j.attempts > 0 and j.locked_at is null');
    return JOBS.every((name) => some.some((one) => one.name === name)) ? jobs() : undefined;
  }, 'jobs of each kind to wait');
  await server.kill();
  await db.query(
    `update graphile_worker._private_jobs set run_at = now(), locked_at = null, locked_by = null,
       flags = jsonb_set(flags, '{expires_at}', to_jsonb(now() - interval '1 hour'))
     where flags ? 'expires_at'`,
  );
  cloud.heal();
  discord.heal();
  const before = [cloud.calls.length, discord.rest.posted.length, cloud.acts.length, cloud.sent.length];
  server = await server.restart();
  await noJobs();
  const sent = [discord.rest.posted.length, cloud.acts.length, cloud.sent.length];
  expect(sent).toEqual(before.slice(1));
  const metrics = await (await fetch(server.metrics_url)).text();
  const expired = [...metrics.matchAll(/lumio_jobs_run_seconds_count\{[^}]*outcome="expired"[^}]*\} (\d+)/g)];
  expect(expired.reduce((sum, [, count]) => sum + Number(count), 0)).toBe(waiting.length);
  const kept = `select status from chat_sends where status = 'asked' union all
    select status from discord_posts where status = 'asked'`;
  expect(await db.query(kept)).toEqual([]);
});
