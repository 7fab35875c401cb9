import { LINE_MODULES, type LineModule } from '../../domain/automation/bot-modules';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, eventually } from '../support/vendor-cloud';
import { type BotCall, type Chat, CHATS, ModeratedChats } from '../vendors/moderated-chats';

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
  for (const chat of CHATS)
    for (const [kind, person] of [
      ['channel', channels[chat]],
      ['bot', BOTS[chat]],
    ] as const) {
      const path = `/v1/connections/oauth/${chat}`;
      const { state } = (await owner.send('POST', `${path}/start`, { kind, return_to: WEB })).body;
      const code = chats[chat].tokens.code(person);
      expect(await owner.send('POST', `${path}/exchange`, { code, state })).toMatchObject({ status: 200 });
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
         where t.identifier = 'act-on-chat-line'`,
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

const sorted = (calls: readonly BotCall[]) => calls.map((call) => JSON.stringify(call, KEYS)).sort();
const KEYS = ['chat', 'act', 'by', 'about', 'more'];
