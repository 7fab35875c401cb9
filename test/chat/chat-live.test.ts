import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { z } from 'zod';
import type { LoggedRecord } from '../../engines/records/port';
import { normaliseTwitch } from '../../ingest/twitch/normalise';
import { chatLiveEraser } from '../../privacy/erasure/chat';
import { chatLive } from '../../projections/chat/chat';
import { chat } from '../../realtime/chat/chat';
import { undone } from '../support/applied';
import { type TestDatabase, testDatabase } from '../support/database';
import { channelOf, twitchFrame } from '../support/twitch-frames';

const ACCOUNT = uuid();
let t: TestDatabase;
beforeAll(async () => {
  t = await testDatabase();
});
afterAll(() => t?.drop());
const apply = (batch: LoggedRecord[], rebuilding = false) =>
  undone(t.db, (tx) => chatLive.apply(batch, tx, { rebuilding }));

/** The records that a fixture of Twitch's becomes, as the log gives them back. */
function logged(file: string): LoggedRecord[] {
  const text = twitchFrame(file);
  const connection = { connection_id: 'c', account_id: ACCOUNT, channel_id: channelOf(text) };
  const outcome = normaliseTwitch({ text, received_at: Date.parse('2026-11-21T10:00:01Z'), age_ms: 0 }, connection);
  const records = outcome.kind === 'ok' ? outcome.records : [];
  return records
    .filter(({ topic }) => topic === 'chat-events')
    .map(({ owner: _owner, ...draft }, offset) => ({
      ...draft,
      id: uuid(),
      account_id: ACCOUNT,
      received_at: draft.occurred_at,
      trace: null,
      partition: 0,
      offset,
    }));
}

const pushed = async (file: string) =>
  (await apply(logged(file))).map(({ channel, event_type, data }) => {
    expect(channel).toBe(`chat:${ACCOUNT}`);
    const parsed = JSON.parse(data) as Record<string, unknown>;
    expect(data.startsWith(`{"id":"${String(parsed['id'])}"`)).toBe(true);
    return { event_type, data: parsed };
  });

const CHATS = readdirSync(join(__dirname, '../fixtures/twitch')).filter(
  (file) => file.endsWith('.json') && logged(file).length > 0,
);

test.each(CHATS)('%s is told as the channel declares it', async (file) => {
  const carries = chat.carries as Readonly<Record<string, { data: z.ZodType }>>;
  for (const { event_type, data } of await pushed(file)) {
    const { type } = data;
    expect(type ?? 'chat:message').toBe(event_type);
    expect(carries[event_type]!.data.safeParse(data)).toMatchObject({ success: true });
  }
  expect(CHATS.length).toBeGreaterThan(50);
});

test('a message from another room says whose', async () => {
  const [said] = await pushed('channel.chat.message.v1.shared_chat.body.json');
  expect(said!.data).toMatchObject({
    username: 'viewer32',
    message: 'Hi chat',
    is_shared_chat: true,
    source_channel: {
      platform_channel_id: '112233',
      login: 'streamer33',
      display_name: 'streamer33',
      avatar_url: null,
    },
  });
  const [own] = await pushed('channel.chat.message.v1.body.json');
  expect(own!.data).not.toHaveProperty('is_shared_chat');
  expect(own!.data).not.toHaveProperty('type');
});

test.each([
  ['channel.ban.v1.body.json', ['chat:clear_user', 'chat:moderation_log'], { action: 'timeout', duration_secs: 60 }],
  [
    'channel.moderate.ban_reason.event.json',
    ['chat:clear_user', 'chat:moderation_log'],
    { action: 'ban', duration_secs: null },
  ],
  [
    'channel.moderate.delete_long.event.json',
    ['chat:delete', 'chat:moderation_log'],
    { platform_message_id: '4b596dd8-8ab1-4ea1-9f1f-d0b5e1dc9868' },
  ],
  ['channel.chat.message_delete.v1.body.json', ['chat:delete', 'chat:moderation_log'], { deleted_by: null }],
  [
    'channel.unban.cli.body.json',
    ['chat:moderation_log'],
    { data: { action: 'unban', target_user_id: '59797378', moderator_name: 'CLIModerator' } },
  ],
  ['channel.moderate.slow.event.json', ['chat:moderation_log'], { data: { action: 'slow', target_user_id: null } }],
  [
    'channel.suspicious_user.update.restricted.event.json',
    ['chat:user_treatment_update'],
    { user_treatment: 'restricted' },
  ],
])('%s is told as %j', async (file, types, data) => {
  const told = await pushed(file);
  expect(told.map(({ event_type }) => event_type)).toEqual(types);
  expect(told[0]!.data).toMatchObject(data);
});

test('what a build before wrote, and what was erased, is told to nobody; nor is anything in a rebuild', async () => {
  const [record] = logged('channel.chat.message.v1.body.json');
  expect(
    await apply([
      { ...record!, raw: '{"message_id":"m"}' },
      { ...record!, raw: '"[erased]"' },
    ]),
  ).toEqual([]);
  expect(await apply([record!], true)).toEqual([]);
});

test('after an erasure the message keeps its place, and says nothing', async () => {
  const [record] = logged('channel.chat.message.v1.body.json');
  const messages = await chatLiveEraser.messages(t.db, [record!.id]);
  expect(messages.get(record!.id)).toBe(`{"id":"${record!.id}","type":"chat:erased"}`);
});
