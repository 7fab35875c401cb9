import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { v7 as uuid } from 'uuid';
import { readChatRecord } from '../../domain/chat/chat-messages';
import { createIntake } from '../../ingest/runtime/webhook/intake';
import { type DraftRecord, type Outcome, toDelivery } from '../../ingest/runtime/webhook/webhook';
import { normaliseKick } from '../../ingest/kick/webhook';
import { normaliseTrovoChat } from '../../ingest/trovo/chat';
import { normaliseTwitch } from '../../ingest/twitch/normalise';
import { normaliseYoutubeChat } from '../../ingest/youtube/chat';
import { objectsAt } from '../../lib/json/digits';
import { chatLive } from '../../projections/chat/chat';
import { eventLog } from '../../projections/events/events';
import { testDatabase, type TestDatabase } from '../support/database';
import { silentLog } from '../support/log';
import { allMessages } from '../support/outbox';
import { type Engines, engines, runtimeOf, until } from '../support/projections';
import { channelOf, twitchFrame } from '../support/twitch-frames';
import { connectionsOf } from '../support/webhooks';

const NOW = Date.parse('2026-11-21T10:00:01Z');
const KEPT = join(__dirname, '../fixtures');
/** Another folder of payloads, by platform, where there is one. */
const MORE = process.env['LUMIO_MORE_FIXTURES'];
const FOLDERS = [KEPT, ...(MORE !== undefined && existsSync(MORE) ? [MORE] : [])];

/** Files with payloads of chats, by platform. */
const CHATS: Readonly<Record<string, RegExp>> = {
  twitch: /^channel\.(?:chat\.(?:message|notification|clear_user)|ban|unban\.|moderate\.|suspicious_user)/,
  youtube: /^livechat\./,
  kick: /^(?:chat\.message|moderation)\./,
  // One file is the shape of a relay of others.
  trovo: /^(?:chat\.item\.(?!.*_(?:5002|5004|5007|5012|5013)\.)|ws\.chat\.)/,
};

interface Payload {
  file: string;
  account_id: string;
  outcomes: Outcome[];
}

const PAYLOADS = FOLDERS.flatMap((folder) =>
  Object.entries(CHATS).flatMap(([platform, files]) => {
    const names = existsSync(join(folder, platform)) ? readdirSync(join(folder, platform)) : [];
    return names
      .filter((name) => name.endsWith('.json') && files.test(name))
      .map((name) => payloadOf(platform, name, readFileSync(join(folder, platform, name), 'utf8')));
  }),
);

function payloadOf(platform: string, name: string, text: string): Payload {
  const account_id = uuid();
  const of = (channel_id: string) => ({ connection_id: 'c', account_id, channel_id });
  const received = (item: string) => ({ text: item, received_at: NOW, age_ms: 0 });
  const read: Record<string, () => Outcome[]> = {
    twitch: () => {
      const frame = twitchFrame(name, text);
      return [normaliseTwitch(received(frame), of(channelOf(frame)))];
    },
    youtube: () => {
      const items = name.startsWith('livechat.list.') ? objectsAt(text, ['items']) : [text];
      return items.map((item) => normaliseYoutubeChat(received(item), of('UCowner')));
    },
    trovo: () => {
      const items = name.startsWith('ws.') ? objectsAt(text, ['data', 'chats']) : [text];
      return items.map((item) => normaliseTrovoChat(received(item), of('12345')));
    },
    kick: () => {
      const type = name.startsWith('moderation') ? 'moderation.banned' : 'chat.message.sent';
      const headers = { 'kick-event-type': type, 'kick-event-message-id': uuid() };
      return [normaliseKick(toDelivery(headers, Buffer.from(text), NOW, { id_signed: true }))];
    },
  };
  return { file: `${platform}/${name}`, account_id, outcomes: read[platform]!() };
}

const recordsOf = ({ outcomes, account_id }: Payload): DraftRecord[] =>
  outcomes
    .flatMap((outcome) => (outcome.kind === 'ok' ? outcome.records : []))
    .map((record) => ({ ...record, owner: { kind: 'account', account_id } }));

let t: TestDatabase;
let on: Engines;
let runtime: ReturnType<typeof runtimeOf>;
beforeAll(async () => {
  t = await testDatabase();
  on = await engines(t.db);
  runtime = runtimeOf(t.db, on, [chatLive, eventLog]);
  await runtime.start();
  const intake = createIntake({ connections: connectionsOf({}, null), records: on.records, log: silentLog });
  for (const payload of PAYLOADS) {
    const records = recordsOf(payload);
    if (records.length > 0) await intake.store(records, NOW, null);
    // Two deliveries without an id are two messages.
    const again = records.filter(({ external_id }) => external_id !== null);
    if (again.length > 0) await intake.store(again, NOW, null);
  }
  for (const { name, from } of [chatLive, eventLog])
    for (const [partition, { next }] of await on.broker.bounds(from.topic))
      await until(async () => {
        const [row] = await t.db.query<{ position: string }>(
          'select position from checkpoints where projection = $1 and partition = $2',
          [name, partition],
        );
        return Number(row?.position ?? 0) >= next;
      });
});
afterAll(async () => {
  await runtime?.stop();
  await on?.close();
  await t?.drop();
});

test.each(PAYLOADS.map((payload) => [payload.file, payload] as const))(
  '%s is a row, a push, an entry or an event, once',
  async (_file, payload) => {
    const { account_id, outcomes } = payload;
    const records = recordsOf(payload);
    const chats = records.filter(({ topic }) => topic === 'chat-events').map((record) => readChatRecord(record)!);
    const of_kind = (kind: string) => chats.filter((chat) => chat.kind === kind).length;
    const count = async (table: string) => {
      const [row] = await t.db.query<{ count: number }>(
        `select count(*)::int as count from ${table} where account_id = $1`,
        [account_id],
      );
      return row!.count;
    };
    const pushes = (await allMessages(t.db)).filter(({ channel }) => channel === `chat:${account_id}`);
    const pushed = (type: string) => pushes.filter(({ event_type }) => event_type === type).length;

    const stored = outcomes.filter(({ kind }) => kind === 'ok');
    expect(stored.length === 0).toBe(NOT_STORED.has(payload.file));
    expect(await count('platform_chat_messages')).toBe(of_kind('message'));
    expect(pushed('chat:message')).toBe(of_kind('message'));
    expect(await count('moderation_log')).toBe(of_kind('moderation'));
    expect(pushed('chat:user_treatment_update')).toBe(of_kind('treatment'));
    const acts = chats.filter((chat) => chat.kind === 'moderation');
    expect(pushes.length - pushed('chat:message') - pushed('chat:user_treatment_update') > 0).toBe(acts.length > 0);
    expect(await count('platform_event_logs')).toBe(records.filter(({ topic }) => topic === 'platform-events').length);
  },
);

/** Payloads of which nothing is stored: other types report the same act, or the page has no items. */
const NOT_STORED: ReadonlySet<string> = new Set([
  'twitch/channel.chat.clear_user_messages.v1.body.json',
  'twitch/channel.chat.notification.raid.partial.event.json',
  'twitch/channel.chat.notification.unraid.event.json',
  'youtube/livechat.list.ended_offlineAt.json',
]);

test('the kept payloads are those of all four platforms', () => {
  const platforms = PAYLOADS.map(({ file }) => file.split('/')[0]);
  expect(new Set(platforms)).toEqual(new Set(['twitch', 'youtube', 'kick', 'trovo']));
  expect(PAYLOADS.length).toBeGreaterThan(90);
});
