import { randomUUID } from 'node:crypto';
import { DISCORD_FEATURES } from '../../domain/connections/discord-guilds';
import type { Queryable } from '../../engines/postgres/port';
import { EngineUnavailable } from '../../kernel/failures';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { answerDiscordCommand } from '../../reactors/automation/discord-commands';
import { postDiscord } from '../../reactors/connections/discord-posts';
import { createDiscordBuckets, sweepDiscordBuckets } from '../../services/discord/buckets';
import { type DiscordPostRequest, postToDiscord } from '../../services/discord/posts';
import { registerSlashCommands } from '../../services/discord/slash-commands';
import { createHttpClients } from '../../vendors/http/client';
import { DiscordLimited, DiscordRefused, type DiscordRest } from '../../vendors/discord/port';
import { discordRest } from '../../vendors/discord/rest';
import { testDatabase, type TestDatabase } from '../support/database';
import { noMetrics } from '../support/projections';
import { FakeDiscord } from '../vendors/discord-cloud';

const TOKEN = 'bot-token';
const GUILD = '900';
const vendor = new FakeDiscord();
const http = createHttpClients({ metrics: noMetrics, allow_loopback: true });
let t: TestDatabase;
beforeAll(async () => {
  await vendor.start();
  vendor.bot_tokens.add(TOKEN);
  vendor.rest.channels.set(GUILD, [
    { id: '12', name: 'news', type: 5, position: 2 },
    { id: '11', name: 'general', type: 0, position: 1 },
    { id: '13', name: 'voice', type: 2, position: 0 },
  ]);
  t = await testDatabase();
});
afterAll(async () => {
  await http.close();
  await vendor.close();
  await t?.drop();
});
beforeEach(() => vendor.heal());

/** A process of its own. */
const client = (bot_token = TOKEN) =>
  discordRest(http, { api_url: vendor.base_url, bot_token }, createDiscordBuckets(t.db));

/** Posts a text, and tries again where the wait for a limit is too long for one call, as jobs do. */
async function post(by: ReturnType<typeof client>, channel_id: string, text: string): Promise<void> {
  for (;;) {
    try {
      await by.post(channel_id, { text });
      return;
    } catch (error) {
      if (!(error instanceof DiscordLimited)) throw error;
    }
  }
}

test('text channels are listed in their order, and a message pings nobody', async () => {
  expect(await client().textChannels(GUILD)).toEqual([
    { id: '11', name: 'general', type: 0 },
    { id: '12', name: 'news', type: 5 },
  ]);
  const id = await client().post('11', { text: 'Hello @everyone', reply_to: '5' });
  expect(vendor.rest.posted.at(-1)).toEqual({
    ...{ id, channel_id: '11', content: 'Hello @everyone', reply_to: '5' },
    allowed_mentions: { parse: [], replied_user: false },
  });
});

test('refusals name their reason, and an unknown outcome is no refusal', async () => {
  await expect(client().post('404', { text: 'x' })).rejects.toMatchObject({ status: 404, code: 10003 });
  await expect(client('').post('11', { text: 'x' })).rejects.toThrow(DiscordRefused);
  await expect(client('other').textChannels(GUILD)).rejects.toMatchObject({ status: 401 });
  vendor.fail({ path: '/api/v10/channels/11/messages', status: 502 });
  const before = vendor.asked('/api/v10/channels/11/messages');
  await expect(client().post('11', { text: 'once' })).rejects.toThrow(OutcomeUnknown);
  expect(vendor.asked('/api/v10/channels/11/messages')).toBe(before + 1);
  const commands = ['ok', 'Bad Name'].map((name) => ({ name, description: 'd' }));
  await expect(client().registerCommands('1', GUILD, commands)).rejects.toMatchObject({ fields: ['1.name'] });
});

test('two processes together exceed no limit that Discord announces', async () => {
  Object.assign(vendor.rest, { limit: 3, window_ms: 300 });
  const clients = [client(), client()];
  const texts = Array.from({ length: 12 }, (_, n) => `text ${n}`);
  await Promise.all(texts.map((text, n) => post(clients[n % 2]!, '12', text)));
  expect(vendor.rest.textOf('12').sort()).toEqual([...texts].sort());
  expect(vendor.rest.exceeded).toBe(0);
});

test('processes together make at most 50 calls in a second', async () => {
  Object.assign(vendor.rest, { limit: 1_000, window_ms: 10_000 });
  const clients = [client(), client()];
  const texts = Array.from({ length: 60 }, (_, n) => `paced ${n}`);
  await clients[0]!.post('11', { text: 'first' });
  const began = Date.now();
  await Promise.all(texts.map((text, n) => post(clients[n % 2]!, '11', text)));
  expect(vendor.rest.textOf('11')).toEqual(expect.arrayContaining(texts));
  expect(vendor.rest.exceeded).toBe(0);
  // Turns begin with the first call, so that a stall moves calls out of the second, and never into it.
  const in_second = vendor.calls.filter(({ at }) => at >= began && at < began + 1_000);
  expect(in_second.length).toBeLessThanOrEqual(50);
  const full = `insert into discord_buckets (key, most, remaining, resets_at, window_ms, in_flight, taken_at)
    values ('@', 1, 0, now() + interval '1 minute', 25, 0, now())
    on conflict (key) do update set resets_at = excluded.resets_at`;
  await t.db.query(full);
  await expect(clients[0]!.post('11', { text: 'late' })).rejects.toThrow(NotSent);
  await t.db.query(`update discord_buckets set resets_at = now() where key = '@'`);
});

test('a limit of all calls stops each process, and the pause that Discord asks for is the caller’s', async () => {
  vendor.rest.stopped_until = Date.now() + 60_000;
  await expect(client().textChannels(GUILD)).rejects.toMatchObject({ retry_after_ms: expect.any(Number) });
  const before = vendor.calls.length;
  await expect(client().post('11', { text: 'x' })).rejects.toThrow(NotSent);
  expect(vendor.calls).toHaveLength(before);
  vendor.rest.stopped_until = 0;
  await t.db.query(`update discord_buckets set resets_at = now() - interval '2 days'`);
  expect(await sweepDiscordBuckets(t.db)).toBeGreaterThan(0);
  await client().textChannels(GUILD);
});

test('calls that reached nobody hold up no later one', async () => {
  Object.assign(vendor.rest, { limit: 2, window_ms: 300 });
  await client().post('12', { text: 'known' });
  const unreachable = { api_url: 'http://127.0.0.1:1', bot_token: TOKEN };
  const nobody = discordRest(http, unreachable, createDiscordBuckets(t.db));
  for (let n = 0; n < 3; n += 1) {
    await expect(nobody.post('12', { text: 'unsent' })).rejects.toThrow(NotSent);
    await t.db.query(`update discord_buckets set resets_at = now() where key like '%:12'`);
  }
  await client().post('12', { text: 'sent' });
  expect(vendor.rest.textOf('12').at(-1)).toBe('sent');
  const counting = `select key from discord_buckets where key like '%:12' and in_flight > 0`;
  expect(await t.db.query(counting)).toEqual([]);
});

test('a server whose commands cannot be registered holds up no other, and is tried again after them', async () => {
  const ids = [1, 2, 3].map((at) => `01900000-0000-7000-8000-00000000000${at}`);
  await t.db.query(
    `insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
     select c::uuid, c::uuid, 'discord', '70' || at, now(), now() from unnest($1::text[]) with ordinality as u (c, at)`,
    [ids],
  );
  const asked: string[] = [];
  const failed: string[] = [];
  const discord = {
    applicationId: async () => '4242',
    async registerCommands(_application: string, guild_id: string) {
      asked.push(guild_id);
      if (guild_id === '701') throw new OutcomeUnknown('no answer');
    },
  };
  const onFailed = (_error: unknown, guild_id: string) => failed.push(guild_id);
  const register = () => registerSlashCommands({ db: t.db, discord, onFailed }, new AbortController().signal);
  expect([await register(), asked, failed]).toEqual([2, ['701', '702', '703'], ['701']]);
  await t.db.query(`update discord_slash_commands set hash = 'changed' where connection_id = $1::uuid`, [ids[2]]);
  await t.db.query(
    `update discord_slash_commands set tried_at = now() - interval '1 day' where connection_id = $1::uuid`,
    [ids[2]],
  );
  asked.length = 0;
  expect([await register(), asked]).toEqual([1, ['703', '701']]);
});

test('while the database is away nothing is posted, and the post is made later', async () => {
  const away = () => Promise.reject(new EngineUnavailable('PostgreSQL', 'closed'));
  const ids = { account_id: randomUUID(), connection_id: randomUUID(), cause_id: randomUUID() };
  const nothing = { broadcast_id: null, title: null, category: null, platform_user_id: null, name: null, text: null };
  const post = { ...ids, feature: 'event_feed', platform: 'kick', type: 'kick:follower', channel_id: null, ...nothing };
  const run = (db: Pick<Queryable, 'query'>, rest: DiscordRest) => {
    const chats = { postDiscord: (request: DiscordPostRequest) => postToDiscord({ db, discord: rest }, request) };
    const tools = { db, chats, log: { info: () => undefined } };
    return postDiscord.run(post as never, {} as never, tools as never);
  };
  await expect(run({ query: away }, client())).rejects.toThrow(NotSent);
  await t.db.query(
    `insert into bot_connections (id, account_id, platform, platform_user_id, connected_at, since)
     values ($1::uuid, $2::uuid, 'discord', $3, now(), now())`,
    [ids.connection_id, ids.account_id, GUILD],
  );
  await t.db.query(
    `insert into discord_guild_channels (connection_id, account_id, feature, channel_id)
     values ($1::uuid, $2::uuid, 'event_feed', '12')`,
    [ids.connection_id, ids.account_id],
  );
  await t.db.query(
    `insert into account_feature_overrides (account_id, flag, enabled, set_at) values ($1::uuid, 'feature:bots', true, now())`,
    [ids.account_id],
  );
  const buckets = { take: away, answered: away, refused: away };
  const before = vendor.calls.length;
  await expect(run(t.db, discordRest(http, { api_url: vendor.base_url, bot_token: TOKEN }, buckets))).rejects.toThrow(
    NotSent,
  );
  expect(vendor.calls).toHaveLength(before);
  await run(t.db, client());
  expect(vendor.rest.textOf('12').at(-1)).toBe('follower (kick)');
});

test('a busy channel of a server delays neither another one nor the answers of commands', () => {
  const account_id = randomUUID();
  const lanes = DISCORD_FEATURES.map((feature) => postDiscord.lane!({ account_id, feature } as never));
  expect(new Set([...lanes, answerDiscordCommand.lane!({ account_id } as never)]).size).toBe(4);
});
