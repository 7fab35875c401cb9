import { v5 } from 'uuid';
import { readChatRecord } from '../../domain/chat/chat-messages';
import { TOPICS } from '../../domain/common/records';
import type { DiscordFeature } from '../../domain/connections/discord-guilds';
import {
  type DiscordPost,
  personName,
  POST_MS,
  POST_TO_DISCORD,
  postExpiry,
} from '../../domain/connections/discord-posts';
import { eventUserId } from '../../domain/events/event-users';
import { isTransition, readTransition } from '../../domain/history/channel-status';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import type { JobRequest } from '../../kernel/job';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { holdable } from '../../kernel/texts';
import { exactMicros } from '../../lib/time/instants';
import { installedBots, sentHere } from '../../services/automation/account-bots';
import { discordUses, type DiscordUse } from '../../services/discord/uses';

function freshOf(batch: readonly LoggedRecord[]): LoggedRecord[] {
  const now_ms = Date.now();
  return batch.filter((record) => now_ms - timeOf(record) <= POST_MS);
}

/** Records that no earlier transaction has applied. */
const newOf = (batch: readonly LoggedRecord[], { applied }: ApplyMode): LoggedRecord[] =>
  batch.filter(({ id }) => applied?.has(id.toLowerCase()) !== true);

/** The earlier one of the platform's time and ours. */
function timeOf({ occurred_at, received_at }: LoggedRecord): number {
  const times = [exactMicros(occurred_at), exactMicros(received_at)].flatMap((micros) => micros ?? []);
  return times.length === 0 ? Date.parse(received_at) : Math.floor(Math.min(...times) / 1000);
}

/** Namespace of the ids of causes; any fixed UUID does. */
const CAUSES = '4a9d0f52-3f77-4e0a-8a3e-6f1d5f8f2c11';

const NOTHING = {
  ...{ channel_id: null, broadcast_id: null, title: null, category: null },
  ...{ platform_user_id: null, name: null, text: null },
};

type Content = Pick<DiscordPost, 'platform' | 'type'> & Partial<DiscordPost>;

function request(record: LoggedRecord, use: DiscordUse, content: Content, key?: string): JobRequest {
  const { account_id, connection_id, feature } = use;
  const cause_id = v5(key ?? `${feature}:${record.id.toLowerCase()}`, CAUSES);
  const payload: DiscordPost = { ...NOTHING, ...content, account_id, connection_id, feature, cause_id };
  return { name: POST_TO_DISCORD, key: cause_id, payload, expires_at: postExpiry(timeOf(record)) };
}

/** Uses by account. */
async function usesOf(tx: Queryable, records: readonly LoggedRecord[], features: readonly DiscordFeature[]) {
  const accounts = records.map(({ account_id }) => account_id.toLowerCase());
  const uses = records.length === 0 ? [] : await discordUses(tx, accounts, features);
  return ({ account_id }: LoggedRecord) => uses.filter((use) => use.account_id === account_id.toLowerCase());
}

/** Posts stored events and begun broadcasts into the Discord servers of accounts. It has no rows. */
export const discordFeed = projection({
  name: 'discord-feed',
  version: 2,
  awaited: false,
  from: topic(TOPICS.platform_events),
  tables: [],
  jobs: [POST_TO_DISCORD],
  concerns: {
    stored_by: 'event-log',
    async among(batch, tx) {
      const asked = await postsOf(batch, tx);
      return batch.filter((record) => asked.has(record));
    },
  },
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const asked = [...(await postsOf(newOf(batch, mode), tx)).values()].flat();
    if (asked.length > 0) await enqueue(tx, asked);
    return [];
  },
});

/** Posts by record, without records that have none. */
async function postsOf(batch: readonly LoggedRecord[], tx: Queryable): Promise<Map<LoggedRecord, JobRequest[]>> {
  const fresh = freshOf(batch);
  const of = await usesOf(tx, fresh, ['event_feed', 'live_notification']);
  const posts = fresh.map((record): [LoggedRecord, JobRequest[]] => [
    record,
    of(record).flatMap((use) => (use.feature === 'event_feed' ? eventPost(record, use) : livePost(record, use))),
  ]);
  return new Map(posts.filter(([, asked]) => asked.length > 0));
}

function eventPost(record: LoggedRecord, use: DiscordUse): JobRequest[] {
  const { event_types } = use.settings;
  const { type, platform, raw } = record;
  if (event_types && !event_types.includes(type)) return [];
  const platform_user_id = eventUserId(platform, raw);
  const name = platform_user_id === null ? null : personName(raw);
  return [request(record, use, { platform, type, platform_user_id, name })];
}

/** Post of a broadcast; further reports of the broadcast have the same cause. */
function livePost(record: LoggedRecord, use: DiscordUse): JobRequest[] {
  const { type, platform, raw, occurred_at } = record;
  if (!isTransition(type)) return [];
  const { online, channel_id, broadcast_id, title, category, at } = readTransition({ type, raw, at: occurred_at });
  if (!online) return [];
  const key = `live:${use.connection_id}:${platform}:${channel_id}:${broadcast_id ?? at}`;
  return [request(record, use, { platform, type, channel_id, broadcast_id, title, category }, key)];
}

/** Posts lines of the accounts' own chats into their Discord servers. It has no rows. */
export const discordMirror = projection({
  name: 'discord-mirror',
  version: 2,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [],
  jobs: [POST_TO_DISCORD],
  concerns: {
    stored_by: 'chat-live',
    async among(batch, tx) {
      const lines = await linesOf(batch, tx);
      return batch.filter((record) => lines.has(record));
    },
  },
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const asked = await mirrored([...(await linesOf(newOf(batch, mode), tx)).values()].flat(), tx);
    if (asked.length > 0) await enqueue(tx, asked);
    return [];
  },
});

interface Line {
  account_id: string;
  platform: string;
  platform_user_id: string;
  message_id: string | null;
  at_ms: number;
  isBroadcaster: boolean;
  job: JobRequest;
}

/** Lines by record, without records that have none. */
async function linesOf(batch: readonly LoggedRecord[], tx: Queryable): Promise<Map<LoggedRecord, Line[]>> {
  const fresh = freshOf(batch.filter(({ type, platform }) => type === `${platform}:chat`));
  const of = await usesOf(tx, fresh, ['chat_mirror']);
  const lines = fresh.map((record): [LoggedRecord, Line[]] => [
    record,
    of(record).flatMap((use) => lineOf(record, use)),
  ]);
  return new Map(lines.filter(([, some]) => some.length > 0));
}

/** Lines of persons in the account's own room of a streaming platform. */
function lineOf(record: LoggedRecord, use: DiscordUse): Line[] {
  const message = holdable(readChatRecord(record), record.raw);
  if (message?.kind !== 'message' || message.shared_chat !== null || !message.author?.id) return [];
  const { platform, author, channel_id, message_id, text } = message;
  const platform_user_id = author!.id!;
  const name = author!.display_name ?? author!.username;
  if (text.trim() === '') return [];
  return [
    {
      ...{ account_id: use.account_id, platform, platform_user_id, message_id, at_ms: timeOf(record) },
      isBroadcaster: platform_user_id === channel_id,
      job: request(record, use, { platform, type: record.type, platform_user_id, name, text }),
    },
  ];
}

/** Jobs of the lines that no bot of this installation wrote. */
async function mirrored(lines: readonly Line[], tx: Queryable): Promise<JobRequest[]> {
  if (lines.length === 0) return [];
  const isBot = await installedBots(tx, lines);
  const isSentHere = await sentHere(
    tx,
    lines.filter((line) => isBot(line) && line.isBroadcaster),
  );
  return lines.filter((line) => !isBot(line) || (line.isBroadcaster && !isSentHere(line))).map(({ job }) => job);
}
