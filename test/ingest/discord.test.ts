import { z } from 'zod';
import { EVENT_TYPES, shapeOf } from '../../domain/events/event-catalogue';
import { createDiscordAdapter } from '../../ingest/discord/adapter';
import type { DiscordSession } from '../../ingest/discord/session';
import { Boosts, normaliseDiscord } from '../../ingest/discord/members';
import { createDiscordCommands } from '../../ingest/discord/commands';
import { createShards, shardConnections } from '../../ingest/discord/shards';
import {
  ConnectionRefused,
  LinkLost,
  type LinkedConnection,
  PauseAsked,
} from '../../ingest/runtime/connection/adapter';
import { createHttpClients } from '../../vendors/http/client';
import { discordGateway } from '../../vendors/discord/gateway';
import { testDatabase } from '../support/database';
import { KeptLink } from '../support/kept-link';
import { noMetrics, until } from '../support/projections';
import { fixture } from '../support/webhooks';
import { FakeDiscord } from '../vendors/discord-cloud';

const ACCOUNT = '01900000-0000-7000-8000-000000000001';
const GUILD = '1132079436691415100';
const TOKEN = 'bot-token';
const connection = { connection_id: 'discord-bot', account_id: null, channel_id: 'bot' };

const vendor = new FakeDiscord();
const http = createHttpClients({ metrics: noMetrics, allow_loopback: true });
const sessions: DiscordSession[] = [];
let shards = 1;
let lookups_fail = false;
/** Number of look-ups that fail. */
let failing_lookups = 0;
let slash_fails = false;
let roles_fail = false;
/** Resolves when names of commands can be looked up. */
let named: Promise<unknown> = Promise.resolve();
const acknowledged: string[] = [];
const refused: string[] = [];
/** Whose a guild is, is not known before. */
let known: Promise<unknown> = Promise.resolve();
const adapter = createDiscordAdapter({
  gateway: {
    place: (token) => discordGateway(http, { api_url: vendor.base_url }).place(token),
    socket: (url) => discordGateway(http, { api_url: vendor.base_url }).socket(url),
  },
  async accountOf(guild_id) {
    await known;
    if (lookups_fail || (failing_lookups -= 1) >= 0) throw new Error('the database is away');
    return guild_id === GUILD ? ACCOUNT : null;
  },
  shards: { atLeast: async (count) => (shards = Math.max(shards, count)) },
  commands: createDiscordCommands({
    async isCommand(_account_id, word) {
      await named;
      return word === 'hug';
    },
    async isAnswered({ word }) {
      if (slash_fails) throw new Error('the database is away');
      return word === 'hug';
    },
    rest: {
      refuse: async ({ token }) => void refused.push(token),
      acknowledge: async ({ token }) => void acknowledged.push(token),
      async roles() {
        if (roles_fail) throw new Error('Discord is away');
        return { owner_id: '700', permissions: new Map([[GUILD, 1n << 10n], ['5', 1n << 3n]]) }; // prettier-ignore
      },
    },
  }),
  timings: { open_ms: 2_000, invalid_ms: [1, 5] },
});
beforeAll(() => vendor.start());
beforeEach(() => {
  vendor.heal();
  vendor.bot_tokens.clear();
  vendor.bot_tokens.add(TOKEN);
  Object.assign(vendor, { heartbeat_interval: 45_000, remaining: 1_000, deaf: false, resume_url: null });
  Object.assign(vendor, { shards: 1, least_shards: 1 });
  vendor.identified_as.length = 0;
  shards = 1;
  lookups_fail = false;
  failing_lookups = 0;
});
afterEach(async () => {
  for (const session of sessions.splice(0)) await adapter.stop(session);
  vendor.forgetSessions();
});
afterAll(async () => {
  await http.close();
  await vendor.close();
});

async function opened(before: { state: unknown } | null = null, tokens = [TOKEN], of = connection as LinkedConnection) {
  const link = new KeptLink(adapter, of, tokens);
  link.state = (before?.state ?? null) as never;
  const session = await (before === null ? adapter.connect(link) : adapter.resume(link, link.state));
  sessions.push(session);
  return { link, session };
}
const frame = (name: string) => JSON.parse(fixture('discord', `${name}.json`).toString()) as { t: string; d: any };
const joined = frame('GUILD_MEMBER_ADD.captured');
const person = (id: string, of: object = {}) => ({ guild_id: GUILD, user: { id, username: `user-${id}` }, ...of });
const types = (link: KeptLink) => link.records.map(({ type }) => type);
const stored = (link: KeptLink, count: number) => until(() => link.records.length === count);

test('joining, leaving and a boost that begins become events of the account that the guild is linked to', async () => {
  const { link } = await opened();
  vendor.say(joined.t, joined.d);
  vendor.say('GUILD_MEMBER_UPDATE', { ...joined.d, nick: 'renamed' });
  vendor.say('GUILD_MEMBER_UPDATE', { ...joined.d, premium_since: '2026-09-24T00:00:00Z' });
  vendor.say('GUILD_MEMBER_UPDATE', { ...joined.d, premium_since: '2026-09-24T00:00:00Z', nick: 'again' });
  vendor.say('GUILD_MEMBER_REMOVE', person(joined.d.user.id));
  vendor.say('GUILD_MEMBER_ADD', { ...joined.d, guild_id: '1' });
  vendor.say('GUILD_MEMBER_ADD', frame('GUILD_MEMBER_ADD.minimal').d);
  await stored(link, 3);
  expect(types(link)).toEqual(['discord:member_join', 'discord:boost', 'discord:member_leave']);
  for (const { type, raw, subject, owner } of link.records) {
    expect([subject, owner]).toEqual([`discord:${joined.d.user.id}`, { kind: 'account', account_id: ACCOUNT }]);
    const known = EVENT_TYPES.find((one) => one.type === type)!;
    const schema = z.fromJSONSchema(shapeOf(known) as Parameters<typeof z.fromJSONSchema>[0]);
    expect([type, schema.safeParse(JSON.parse(raw)).error]).toEqual([type, undefined]);
  }
  expect(link.records[0]).toMatchObject({ occurred_at: '2024-04-09T04:00:26.288Z' });
});

test('of messages, only those of persons that name a command are stored, with the role of their author', async () => {
  const { link } = await opened();
  const author = { id: '701', username: 'ada', global_name: null };
  const write = (content: string, more: object = {}, member: object = {}) =>
    vendor.say('MESSAGE_CREATE', {
      ...{ id: String(1_400_000_000_000_000_000n + BigInt(link.records.length)), channel_id: '15', guild_id: GUILD },
      ...{ content, author, member: { roles: [], ...member }, ...more },
    });
  roles_fail = true;
  write('!hug first', { id: '1400000000000000001' });
  await stored(link, 1);
  roles_fail = false;
  for (const content of ['hug', '! hug', '!other', 'say !hug', '']) write(content);
  write('!hug', { author: { ...author, bot: true } });
  write('!hug', { webhook_id: '9' });
  write('!hug', { guild_id: '1' });
  write('!hug', { author: null });
  write('!hug', { id: '1400000000000000002' }, { roles: ['5'], premium_since: '2026-01-01T00:00:00Z' });
  write('!hug', { id: '1400000000000000003' }, { premium_since: '2026-01-01T00:00:00Z' });
  write('!hug', { id: '1400000000000000004', author: { ...author, id: '700' } });
  await stored(link, 4);
  const roles = link.records.map(({ raw }) => JSON.parse(raw).role as string);
  expect(roles).toEqual(['follower', 'moderator', 'subscriber', 'broadcaster']);
  expect(link.records[0]).toMatchObject({
    ...{ topic: 'chat-events', type: 'discord:command', subject: 'discord:701' },
    ...{ external_id: 'discord:command:1400000000000000001', occurred_at: expect.stringMatching(/^2025-07-/) },
  });
  expect(vendor.intents).toBe(3 | (1 << 9) | (1 << 15));
});

test('an interaction is acknowledged before earlier events are stored, and is stored after them', async () => {
  const { link } = await opened();
  let find = (): void => undefined;
  named = new Promise<void>((resolve) => (find = resolve));
  const user = { id: '701', username: 'ada', global_name: null };
  const place = { channel_id: '15', guild_id: GUILD };
  vendor.say('MESSAGE_CREATE', {
    ...{ id: '1400000000000000005', content: '!hug', author: user, member: { roles: [] } },
    ...place,
  });
  const interaction = { type: 2, token: 'early', application_id: '4242', data: { name: 'hug' } };
  vendor.say('INTERACTION_CREATE', {
    ...{ id: '1400000000000000006', ...interaction, member: { user, permissions: '0' } },
    ...place,
  });
  await until(() => acknowledged.includes('early'));
  expect(link.records).toEqual([]);
  find();
  await stored(link, 2);
  const messages = link.records.map(({ raw }) => JSON.parse(raw).message_id as string);
  expect(messages).toEqual(['1400000000000000005', '1400000000000000006']);
});

test('a slash command that has ended is refused at once and not stored; one that cannot be looked up is', async () => {
  const { link } = await opened();
  const user = { id: '701', username: 'ada', global_name: null };
  const use = (id: string, token: string, name: string) =>
    vendor.say('INTERACTION_CREATE', {
      ...{ id, type: 2, token, application_id: '4242', data: { name }, member: { user, permissions: '0' } },
      ...{ channel_id: '15', guild_id: GUILD },
    });
  use('1400000000000000007', 'ended', 'gone');
  await until(() => refused.includes('ended'));
  slash_fails = true;
  use('1400000000000000008', 'unsure', 'gone');
  await stored(link, 1);
  slash_fails = false;
  expect(link.records.map(({ raw }) => JSON.parse(raw).message_id as string)).toEqual(['1400000000000000008']);
  expect([acknowledged.includes('ended'), acknowledged.includes('unsure')]).toEqual([false, true]);
});

test('an update without the time of a boost keeps what is known, and null ends the boost', async () => {
  const { link } = await opened();
  const update = (nick: string, of: object = {}) => vendor.say('GUILD_MEMBER_UPDATE', person('9', { nick, ...of }));
  const since = '2026-09-24T00:00:00Z';
  vendor.say('GUILD_MEMBER_ADD', person('9', { joined_at: '2026-11-21T10:00:00Z', premium_since: null }));
  update('first', { premium_since: since });
  update('partial');
  update('unchanged', { premium_since: since.replace('Z', '+00:00') });
  for (const [day, none] of [null, '', 0, '0001-01-01T00:00:00Z'].entries()) {
    update('ended', { premium_since: none });
    update('partial again');
    update('again', { premium_since: `2026-10-0${day + 1}T00:00:00Z` });
  }
  vendor.say('GUILD_MEMBER_REMOVE', person('9'));
  await until(() => types(link).at(-1) === 'discord:member_leave');
  expect(types(link)).toEqual([
    'discord:member_join',
    ...Array<string>(5).fill('discord:boost'),
    'discord:member_leave',
  ]);
});

test('what was said while nobody listened is repeated to who goes on, and what was stored counts once', async () => {
  const { link, session } = await opened();
  vendor.say('GUILD_MEMBER_ADD', person('1', { joined_at: '2026-11-21T10:00:00Z' }));
  vendor.say('GUILD_MEMBER_REMOVE', person('2'));
  await stored(link, 2);
  const before = structuredClone(link.state) as { seq: number };
  vendor.closeAll(4000);
  await expect(session.ended).rejects.toThrow('4000');
  vendor.say('GUILD_MEMBER_REMOVE', person('3'));
  const next = await opened({ state: before });
  await stored(next.link, 1);
  expect([vendor.resumed > 0, next.link.gaps]).toEqual([true, []]);
  // It died before it kept how far it was: the same words have the same ids.
  const again = await opened({ state: { ...before, seq: before.seq - 2 } });
  await stored(again.link, 3);
  const ids = [...link.records, ...next.link.records].map(({ external_id }) => external_id);
  expect(again.link.records.map(({ external_id }) => external_id)).toEqual(ids);
});

test('a session that Discord does not know is begun anew, and the gap is told', async () => {
  const { link, session } = await opened();
  await adapter.stop(session);
  vendor.forgetSessions();
  const resuming = new KeptLink(adapter, connection, [TOKEN]);
  const failure = await adapter.resume(resuming, link.state).catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(PauseAsked);
  expect([resuming.state, resuming.gaps.length]).toEqual([null, 1]);
  const before = vendor.identified;
  await opened();
  expect(vendor.identified).toBe(before + 1);
});

test('a place to go on that is gone, or none of Discord’s, costs no session', async () => {
  vendor.resume_url = 'wss://evil.example';
  const { link, session } = await opened();
  vendor.say('GUILD_MEMBER_REMOVE', person('7'));
  await stored(link, 1);
  await adapter.stop(session);
  const resuming = new KeptLink(adapter, connection, [TOKEN]);
  await expect(adapter.resume(resuming, link.state)).rejects.toThrow('evil.example');
  vendor.say('GUILD_MEMBER_REMOVE', person('8'));
  const { link: next } = await opened({ state: resuming.state });
  await stored(next, 1);
  expect(next.gaps).toEqual([]);
});

test('heartbeats are sent, asked for and missed', async () => {
  vendor.heartbeat_interval = 300;
  const { session } = await opened();
  const before = vendor.beats;
  await until(() => vendor.beats > before + 2);
  vendor.deaf = true;
  await expect(session.ended).rejects.toThrow(/closed the connection/);
  vendor.deaf = false;
  vendor.heartbeat_interval = 45_000;
  await opened();
  const asked = vendor.beats;
  vendor.send('{"op":1,"d":null}');
  await until(() => vendor.beats === asked + 1);
});

test('told to come again, the session goes on', async () => {
  const { link, session } = await opened();
  vendor.say('GUILD_MEMBER_REMOVE', person('1'));
  await stored(link, 1);
  vendor.send('{"op":7,"d":null}');
  await expect(session.ended).rejects.toThrow(/closed/);
  const before = vendor.resumed;
  await opened({ state: link.state });
  expect(vendor.resumed).toBe(before + 1);
});

test('a token that is none, intents that are not switched on, and a day without sessions left', async () => {
  await expect(opened(null, ['wrong'])).rejects.toThrow(ConnectionRefused);
  vendor.may_read = false;
  await expect(opened()).rejects.toThrow(LinkLost);
  const { session } = await opened();
  expect(vendor.intents).toBe(3);
  vendor.may_read = true;
  vendor.closeAll(4014);
  const failure = await session.ended.catch((error: unknown) => error);
  expect(failure).toMatchObject({ reason: 'disallowed_intents' });
  vendor.remaining = 0;
  await expect(opened()).rejects.toMatchObject({ pause_ms: 60_000 });
});

test('too many servers for the shards raise their number, and each shard begins a session of its own', async () => {
  vendor.least_shards = 2;
  await expect(opened()).rejects.toThrow(LinkLost);
  expect(shards).toBe(2);
  const [first, second] = shardConnections(shards);
  expect(first).toMatchObject({ connection_id: 'discord-bot', channel_id: 'bot' });
  expect(second).toMatchObject({ connection_id: 'discord-bot:1', channel_id: 'bot' });
  const { link } = await opened(null, [TOKEN], first);
  await opened(null, [TOKEN], second);
  expect(vendor.identified_as).toEqual([[0, 1], [0, 2], [1, 2]]); // prettier-ignore
  vendor.say('GUILD_MEMBER_REMOVE', person('1'));
  await stored(link, 1);
  // The same shard of the same number goes on; a session of another number does not, and the gap is told.
  const before = vendor.identified;
  expect((await opened(link, [TOKEN], first)).link.gaps).toEqual([]);
  expect(vendor.identified).toBe(before);
  vendor.least_shards = 1;
  const { link: other } = await opened(link, [TOKEN], shardConnections(3)[0]);
  expect(other.gaps).toHaveLength(1);
  expect(vendor.identified_as.at(-1)).toEqual([0, 3]);
});

test('a number of shards that Discord recommends is taken over before it is required', async () => {
  vendor.shards = 3;
  await opened();
  expect(shards).toBe(3);
});

test('a running session that Discord ends for want of shards raises their number', async () => {
  const { session } = await opened();
  vendor.closeAll(4011);
  await expect(session.ended).rejects.toThrow(LinkLost);
  expect(shards).toBe(2);
});

test('the number of shards is the same for all processes, and only grows', async () => {
  const t = await testDatabase();
  try {
    const [one, other] = [1, 2].map(() => createShards({ db: t.db, metrics: noMetrics }));
    expect(await Promise.all([one!.atLeast(0), other!.atLeast(1)])).toEqual([1, 1]);
    expect(await Promise.all([one!.atLeast(3), other!.atLeast(3)])).toEqual([3, 3]);
    expect([await one!.atLeast(1), await other!.atLeast(1_000_000)]).toEqual([3, 1_000]);
  } finally {
    await t.drop();
  }
});

test('while it cannot be asked whose a guild is, nothing is passed over', async () => {
  const { link, session } = await opened();
  vendor.say('GUILD_MEMBER_REMOVE', person('1'));
  await stored(link, 1);
  lookups_fail = true;
  vendor.say('GUILD_MEMBER_REMOVE', person('2'));
  await expect(session.ended).rejects.toThrow();
  lookups_fail = false;
  const { link: next } = await opened({ state: link.state });
  await stored(next, 1);
  expect(next.records[0]).toMatchObject({ subject: 'discord:2' });
});

test('an event that could not be stored is repeated, although later ones had arrived', async () => {
  const { link, session } = await opened();
  let open = () => undefined as void;
  known = new Promise<void>((resolve) => (open = resolve));
  failing_lookups = 1;
  const heard = jest.spyOn(link, 'heard');
  for (const id of ['1', '2', '3']) vendor.say('GUILD_MEMBER_REMOVE', person(id));
  await until(() => heard.mock.calls.length >= 3);
  open();
  await expect(session.ended).rejects.toThrow();
  const { link: next } = await opened({ state: link.state });
  await stored(next, 3);
  expect(next.records.map(({ subject }) => subject)).toEqual(['discord:1', 'discord:2', 'discord:3']);
  expect(link.records).toEqual([]);
});

test('what cannot be stored yet is left with Discord, and none of it is lost', async () => {
  vendor.heartbeat_interval = 2_000;
  const { link } = await opened();
  let open = () => undefined as void;
  known = new Promise<void>((resolve) => (open = resolve));
  const heard = jest.spyOn(link, 'heard');
  const nick = 'x'.repeat(100_000);
  for (let n = 0; n < 400; n += 1) vendor.say('GUILD_MEMBER_ADD', person(String(n), { nick }));
  const beats = vendor.beats;
  await until(() => vendor.beats > beats + 2);
  expect(heard.mock.calls.length).toBeLessThan(100);
  open();
  await stored(link, 400);
  expect(link.gaps).toEqual([]);
});

test('whatever the gateway sends, the process lives', async () => {
  const { session } = await opened();
  const noise = ['', '{', 'null', '[]', '0', '{"op":0}', '{"op":0,"s":1e99,"t":"X"}', '{"op":0,"s":2,"t":{},"d":[]}'];
  for (const text of [...noise, '{"op":9}x', '{"op":99}', '{"op":0,"s":3,"t":"GUILD_CREATE","d":{"members":7}}'])
    vendor.send(text);
  vendor.send(Buffer.from([0, 255]));
  vendor.send('{"op":10,"d":null}');
  await expect(session.ended).rejects.toThrow(/closed/);
});

test('a boost is told from one that goes on', () => {
  const boosts = new Boosts();
  const now = Date.parse('2026-11-21T10:00:00Z');
  const begins = (user: string, since: string | null) => boosts.begins(GUILD, user, since, now);
  expect(begins('old', '2024-01-01T00:00:00Z')).toBe(false);
  expect(begins('new', '2026-11-21T09:59:00Z')).toBe(true);
  expect(begins('new', '2026-11-21T09:59:00Z')).toBe(false);
  expect(begins('known', null)).toBe(false);
  expect(begins('known', '2024-01-01T00:00:00Z')).toBe(true);
  expect(begins('known', null)).toBe(false);
  expect(begins('known', '2026-11-21T09:59:00Z')).toBe(true);
});

test.each(['', '[]', '{}', `{"account_id":"${ACCOUNT}","action":"boost","place":"s:1","member":{}}`])(
  'what is no word of the gateway is parked: %s',
  (text) => {
    expect(normaliseDiscord({ text, received_at: 0 })).toMatchObject({ kind: 'park' });
  },
);
