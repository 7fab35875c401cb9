import { LINE_MODULES, type LineModule } from '../../domain/automation/bot-modules';
import { Automations, chain } from '../support/automations';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { type BotCall, type Chat, CHATS, ModeratedChats, type Said } from '../vendors/moderated-chats';

const WEB = 'https://app.example';
const BOTS: Readonly<Record<Chat, string>> = { twitch: '900', youtube: 'UCbot', trovo: '900' };
const chats = new ModeratedChats();
let server: TestServer;
let owner: ApiClient;
let channels: Record<Chat, string>;

beforeAll(async () => {
  await chats.start();
  server = await startServer({ env: { ...chats.env(), LUMIO_HOSTS__WEB: WEB } });
  owner = new ApiClient(server.base_url, server.credentials.access_token);
  const { twitch, youtube, trovo } = server.credentials.connections;
  channels = {
    ...{ twitch: twitch.platform_channel_id, youtube: youtube.platform_channel_id, trovo: trovo.platform_channel_id },
  };
  chats.open(channels);
  for (const chat of CHATS) {
    await connect(chat, 'channel', channels[chat]);
    await connect(chat, 'bot', BOTS[chat]);
  }
  for (const chat of CHATS) {
    const response = `last ${chat}`;
    const last = { name: `last-${chat}`, response_type: 'text', response, platforms: [chat] };
    expect((await owner.send('POST', '/v1/bot-commands', last)).status).toBe(201);
  }
  await eventually(async () => chats.isListened() || undefined, 'the chats');
});
afterAll(async () => {
  await server?.dispose();
  await chats.close();
});

async function connect(chat: Chat, kind: 'channel' | 'bot', person: string): Promise<void> {
  const path = `/v1/connections/oauth/${chat}`;
  const { state } = (await owner.send('POST', `${path}/start`, { kind, return_to: WEB })).body;
  const code = chats[chat].tokens.code(person);
  expect(await owner.send('POST', `${path}/exchange`, { code, state })).toMatchObject({ status: 200 });
}

const put = async (name: string, body: object) =>
  expect(await owner.send('PUT', `/v1/bot-modules/${name}`, body)).toMatchObject({ status: 200 });
const isLast = ({ about }: BotCall) => about.startsWith('last ');

let persons = 1_000;
const somebody = () => String((persons += 1));

/** Lines on which one module acts. */
const LINES: Readonly<Record<LineModule, string>> = {
  link_protection: 'see evil.com',
  spam_protection: 'a a a a a',
  word_filter: 'DARN it',
};

/** Calls of the bots, once all lines before have been read and no act waits. */
async function settled(count: number): Promise<BotCall[]> {
  for (const chat of CHATS) chats.say(chat, { user: somebody(), text: `!last-${chat}` });
  await eventually(async () => chats.calls.filter(isLast).length === CHATS.length || undefined, 'the last answers');
  await eventually(async () => {
    const jobs = await server.database!.db.query(
      `select 1 from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
         where t.identifier in ('act-on-chat-line', 'answer-bot-command')`,
    );
    return jobs.length === 0 || undefined;
  }, 'the acts of modules');
  const calls = chats.calls.splice(0).filter((call) => !isLast(call));
  expect(calls).toHaveLength(count);
  return calls;
}

const ACTIONS = ['warn', 'delete', 'timeout', 'ban'] as const;
type Action = (typeof ACTIONS)[number];
/** Acts that are carried out in the place of others. */
const MILDER: Partial<Record<Chat, Partial<Record<Action, Action>>>> = { trovo: { delete: 'warn', timeout: 'warn' } };
const LABELS = { link_protection: 'Link protection', spam_protection: 'Spam protection', word_filter: 'Word filter' };

test('each module carries out each action on each platform, or the nearest milder one', async () => {
  const expected: BotCall[] = [];
  const noted: string[] = [];
  for (const round of ACTIONS.keys()) {
    const actionOf = (name: LineModule) => ACTIONS[(round + LINE_MODULES.indexOf(name)) % ACTIONS.length]!;
    for (const name of LINE_MODULES) {
      // The warning has a filtered word.
      const limits = { spam_protection: { max_repeats: 3 }, word_filter: { words: ['darn'] }, link_protection: {} }[
        name
      ];
      const acting = { action: actionOf(name), timeout_seconds: 77, warning_text: `darn ${name}` };
      await put(name, { enabled: true, config: { ...limits, ...acting } });
    }
    for (const chat of CHATS)
      for (const name of LINE_MODULES) {
        const user = somebody();
        const message_id = chats.say(chat, { user, text: LINES[name] });
        const wanted = actionOf(name);
        const action = MILDER[chat]?.[wanted] ?? wanted;
        const about = { warn: `darn ${name}`, delete: message_id, timeout: user, ban: user }[action];
        const more = {
          warn: chat === 'twitch' ? message_id : undefined,
          timeout: 77,
          delete: undefined,
          ban: undefined,
        };
        const act = action === 'warn' ? 'say' : action;
        expected.push({ chat, act, by: BOTS[chat], about, more: more[action] });
        const note = action === wanted ? '' : `: ${action}, because ${wanted} is not possible here`;
        noted.push(`${chat} ${action}: ${LABELS[name]}${note}`);
      }
    const calls = await settled(9);
    expect(sorted(calls)).toEqual(sorted(expected.splice(0)));
  }
  const log = await eventually(async () => {
    const { data } = (await owner.get('/v1/chat/moderation-log?limit=100')).body;
    return data.length >= noted.length ? (data as Record<string, string>[]) : undefined;
  }, 'the entries of the log');
  expect(log.map(({ platform, action, reason }) => `${platform} ${action}: ${reason}`).sort()).toEqual(noted.sort());
});

test('further warnings of a person in an hour delete and time out, where the platform does so', async () => {
  const config = { words: ['darn'], action: 'warn', warning_text: 'Mind it', timeout_seconds: 60 };
  await put('word_filter', { enabled: true, config });
  const user = somebody();
  const lines = CHATS.map((chat) => ({
    chat,
    ids: Array.from({ length: 6 }, () => chats.say(chat, { user, text: 'darn' })),
  }));
  const calls = await settled(18);
  const expected = lines.flatMap(({ chat, ids }) => {
    const by = BOTS[chat];
    const warn = (message_id: string): BotCall => {
      return { chat, act: 'say', by, about: 'Mind it', more: chat === 'twitch' ? message_id : undefined };
    };
    if (chat === 'trovo') return ids.map(warn);
    const remove = (about: string): BotCall => ({ chat, act: 'delete', by, about });
    return [
      ...ids.slice(0, 2).map(warn),
      ...ids.slice(2, 5).map(remove),
      { chat, act: 'timeout' as const, by, about: user, more: 60 },
    ];
  });
  expect(sorted(calls)).toEqual(sorted(expected));
  const reasons = await eventually(async () => {
    const rows = await server.database!.db.query<{ action: string; reason: string }>(
      `select action, content ->> 'reason' as reason from moderation_log
       where platform = 'trovo' and content ->> 'target_user_id' = $1`,
      [user],
    );
    return rows.length === 6 ? rows.map(({ action, reason }) => `${action} ${reason}`).sort() : undefined;
  }, 'the entries of the log');
  expect(reasons).toEqual([
    ...Array<string>(2).fill('warn Word filter'),
    ...Array<string>(3).fill('warn Word filter: warn, because delete is not possible here'),
    'warn Word filter: warn, because timeout is not possible here',
  ]);
});

test('exempt roles are spared, and a flag that is off ends the acts', async () => {
  const config = { words: ['darn'], action: 'ban' };
  await put('word_filter', { enabled: true, config, exempt_roles: ['vips', 'subscribers'] });
  const roles = { twitch: ['vip', 'subscriber'], youtube: ['subscriber'], trovo: ['vip', 'subscriber'] } as const;
  const darn = (chat: Chat, said: Partial<Said> = {}): BotCall => {
    const { user = somebody() } = said;
    chats.say(chat, { text: 'darn', ...said, user });
    return { chat, act: 'ban', by: BOTS[chat], about: user };
  };
  const expected: BotCall[] = [];
  for (const chat of CHATS) {
    darn(chat, { user: channels[chat] });
    darn(chat, { roles: ['moderator'] });
    for (const role of roles[chat]) darn(chat, { roles: [role] });
    expected.push(darn(chat));
  }
  expect(sorted(await settled(3))).toEqual(sorted(expected.splice(0)));
  await put('word_filter', { exempt_roles: [] });
  for (const chat of CHATS) {
    darn(chat, { user: channels[chat] });
    darn(chat, { roles: ['moderator'] });
    for (const role of roles[chat]) expected.push(darn(chat, { roles: [role] }));
  }
  expect(sorted(await settled(5))).toEqual(sorted(expected));

  await put('link_protection', { enabled: true, config: { action: 'ban' } });
  await put('spam_protection', { enabled: true, config: { action: 'ban', max_repeats: 3 } });
  const path = `/v1/admin/accounts/${server.credentials.account_id}/overrides`;
  const flags = (enabled: boolean) => {
    const features = LINE_MODULES.map((name) => ({ key: `bot_module:${name}`, enabled }));
    return owner.send('PATCH', path, { features });
  };
  const objected = () => CHATS.flatMap((chat) => LINE_MODULES.map((name) => darn(chat, { text: LINES[name] })));
  expect((await flags(false)).status).toBe(200);
  objected();
  expect(await settled(0)).toEqual([]);
  expect((await flags(true)).status).toBe(200);
  const again = objected();
  expect(sorted(await settled(9))).toEqual(sorted(again));
  for (const name of LINE_MODULES)
    expect((await owner.send('DELETE', `/v1/bot-modules/${name}`, undefined)).status).toBe(204);
});

test('timed messages come in live channels alone, after enough lines of others', async () => {
  const { db } = server.database!;
  const config = { messages: ['one {{platform}}', 'two {{platform}}'], interval_seconds: 60, min_chat_lines: 2 };
  await put('timed_messages', { enabled: true, config });
  await eventually(
    async () => (await db.query('select 1 from account_schedules')).length === 1 || undefined,
    'the schedule',
  );
  const due = async (): Promise<string[]> => {
    await db.query(`update account_schedules set next_due_at = now() - interval '1 minute'`);
    await eventually(async () => {
      const waiting = await db.query(
        `select 1 from account_schedules s where s.next_due_at < now() or exists (
           select from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
           where t.identifier in ('start-timed-messages', 'send-timed-message'))`,
      );
      return waiting.length === 0 || undefined;
    }, 'the due messages');
    return chats.calls
      .splice(0)
      .map(({ about }) => about)
      .sort();
  };
  const storedLines = async (platform: Chat, text: string): Promise<number> => {
    const lines = 'select 1 from platform_chat_messages where platform = $1 and message = $2';
    return (await db.query(lines, [platform, text])).length;
  };
  const stored = (platform: Chat, text: string, count: number) =>
    eventually(async () => (await storedLines(platform, text)) >= count || undefined, `the line ${text}`);
  await eventually(
    async () => (await db.query('select 1 from channel_status where is_online')).length === 1 || undefined,
    'the broadcast on YouTube',
  );
  expect(await due()).toEqual(['one youtube']);
  chats.trovo.goLive(chats.trovo.channel(channels.trovo));
  await eventually(
    async () => (await db.query('select 1 from channel_status where is_online')).length === 2 || undefined,
    'the broadcast on Trovo',
  );
  expect(await due()).toEqual(['one trovo']);
  await stored('trovo', 'one trovo', 1);
  // Trovo's times are whole seconds: the message counts from the time of its echo.
  await db.query(
    `update timed_messages t set sent_at = to_timestamp(m.place / 1000000.0) from platform_chat_messages m
     where t.platform = 'trovo' and m.platform = 'trovo' and m.message = 'one trovo'`,
  );
  // Messages of the bot are no lines of others.
  for (const chat of ['trovo', 'youtube'] as const) {
    const before = await storedLines(chat, `last ${chat}`);
    chats.say(chat, { user: somebody(), text: `!last-${chat}` });
    await stored(chat, `last ${chat}`, before + 1);
  }
  chats.calls.length = 0;
  expect(await due()).toEqual([]);
  chats.say('trovo', { user: somebody(), text: 'hello' });
  await stored('trovo', 'hello', 1);
  expect(await due()).toEqual(['two trovo']);
  expect((await owner.send('DELETE', '/v1/bot-modules/timed_messages', undefined)).status).toBe(204);
});

describe('a step that moderates', () => {
  let automations: Automations;
  beforeAll(() => void (automations = new Automations(owner)));
  afterEach(() => automations.drop());

  const on = (type: string) => ['trigger:event', { event_types: [type] }] as const;
  const moderate = (action: string) => ['action:moderate', { action, timeout_seconds: 77 }] as const;
  const from = () => ({ broadcaster_user_id: channels.twitch });
  const tell = (type: string, event: Record<string, unknown>) =>
    expect(chats.twitch.notify(channels.twitch, type, event)).toBe(1);
  const at = () => new Date().toISOString();
  const calls = () => chats.calls.splice(0);
  const emit = async (event_type: string, raw: object) =>
    expect(await owner.send('POST', '/v1/events/emit', { event_type, raw })).toMatchObject({ status: 200 });

  test('acts on the person of a follow, a raid and a redemption, once', async () => {
    const by = BOTS.twitch;
    const follow = await automations.make(chain(on('twitch:follower'), moderate('ban')));
    const raid = await automations.make(chain(on('twitch:raid'), moderate('timeout')));
    const redeem = await automations.make(chain(on('twitch:reward'), moderate('ban')));
    const action = { type: 'action:moderate', config: { action: 'timeout', timeout_seconds: 78 } };
    const reward = { platform: 'twitch', title: 'Hush', platform_reward_id: 'hush', action };
    const reward_id = (await owner.send('POST', '/v1/rewards', reward)).body.data.id as string;
    const [follower, raider, redeemer] = [somebody(), somebody(), somebody()];
    const followed_at = at();
    const redeemed_at = at();
    const redemption = { id: `redemption-${redeemer}`, user_id: redeemer, user_name: 'R', reward: { id: 'hush' } };
    for (let times = 0; times < 2; times += 1) {
      tell('channel.follow', { ...from(), user_id: follower, user_name: 'F', followed_at });
      const raided = { from_broadcaster_user_id: raider, to_broadcaster_user_id: channels.twitch, viewers: 5 };
      if (times === 0) tell('channel.raid', raided);
      tell('channel.channel_points_custom_reward_redemption.add', { ...from(), ...redemption, redeemed_at });
    }
    for (const id of [follow, raid, redeem])
      expect(await automations.ended(id)).toMatchObject([{ status: 'succeeded' }]);
    await eventually(async () => chats.calls.length >= 4 || undefined, 'the acts');
    expect(sorted(calls())).toEqual(
      sorted([
        { chat: 'twitch', act: 'ban', by, about: follower },
        { chat: 'twitch', act: 'timeout', by, about: raider, more: 77 },
        { chat: 'twitch', act: 'ban', by, about: redeemer },
        { chat: 'twitch', act: 'timeout', by, about: redeemer, more: 78 },
      ]),
    );
    await owner.send('DELETE', `/v1/rewards/${reward_id}`, undefined);
  });

  test.each<[type: string, action: string, error: string, happen: () => unknown]>([
    ['twitch:cheer', 'ban', 'no_author', () => tell('channel.cheer', { ...from(), is_anonymous: true, bits: 5 })],
    ['twitch:raid_done', 'ban', 'protected_user', () => tell('channel.raid', raidTo(somebody()))],
    ['twitch:stream_offline', 'timeout', 'no_author', () => tell('stream.offline', from())],
    ['twitch:cheer', 'delete', 'no_message', () => tell('channel.cheer', { ...from(), user_id: somebody(), bits: 5 })],
    ['discord:member_join', 'ban', 'unsupported', () => emit('discord:member_join', { user: { id: '5' } })],
    ['my:event', 'ban', 'no_author', () => emit('my:event', {})],
    ['trovo:follower', 'timeout', 'unsupported', () => void followOnTrovo(somebody())],
  ])('for %s fails to %s: %s', async (type, action, error, happen) => {
    const id = await automations.make(chain(on(type), moderate(action)));
    await happen();
    const [run] = await automations.ended(id);
    expect(run).toMatchObject({ status: 'failed', error });
    expect(calls()).toEqual([]);
  });

  test('acts on persons of Trovo and YouTube who have written nothing', async () => {
    const follow = await automations.make(chain(on('trovo:follower'), moderate('ban')));
    const [follower, member] = [somebody(), `UC${somebody()}`];
    followOnTrovo(follower);
    const member_of = await automations.make(chain(on('youtube:member'), moderate('timeout')));
    chats.join(member);
    for (const id of [follow, member_of]) expect(await automations.ended(id)).toMatchObject([{ status: 'succeeded' }]);
    expect(sorted(calls())).toEqual(
      sorted([
        { chat: 'trovo', act: 'ban', by: BOTS.trovo, about: follower },
        { chat: 'youtube', act: 'timeout', by: BOTS.youtube, about: member, more: 77 },
      ]),
    );
  });

  const raidTo = (to_broadcaster_user_id: string) => {
    return { from_broadcaster_user_id: channels.twitch, to_broadcaster_user_id, viewers: 5 };
  };
  const followOnTrovo = (user: string) =>
    chats.trovo.say(channels.trovo, {
      ...{ type: 5003, content: 'just followed channel!' },
      ...{ sender_id: user, user_name: `n${user}`, nick_name: `Name ${user}` },
    });
});

test('a bot that is the channel itself answers the person who types there, and no message of its own', async () => {
  const { data } = (await owner.get('/v1/bot-connections')).body as { data: { id: string; platform: string }[] };
  const { id } = data.find(({ platform }) => platform === 'trovo')!;
  expect((await owner.send('DELETE', `/v1/bot-connections/${id}`, undefined)).status).toBe(204);
  await connect('trovo', 'bot', channels.trovo);
  const command = { name: 'echo', response_type: 'text', response: '!echo {{count}}', platforms: ['trovo'] };
  expect((await owner.send('POST', '/v1/bot-commands', command)).status).toBe(201);
  chats.say('trovo', { user: somebody(), text: '!echo' });
  const first = await settled(1);
  chats.say('trovo', { user: channels.trovo, text: '!echo' });
  expect([...first, ...(await settled(1))].map(({ by, about }) => [by, about])).toEqual([
    [channels.trovo, '!echo 1'],
    [channels.trovo, '!echo 2'],
  ]);
});

const sorted = (calls: readonly BotCall[]) => calls.map((call) => JSON.stringify(call, KEYS)).sort();
const KEYS = ['chat', 'act', 'by', 'about', 'more'];
