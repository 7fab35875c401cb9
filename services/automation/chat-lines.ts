import { LINE_MS } from '../../domain/automation/command-answers';
import { type ChatMessage, readChatRecord } from '../../domain/chat/chat-messages';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { holdable } from '../../kernel/texts';
import { exactMicros } from '../../lib/time/instants';
import { installedBots, placesWithBot, type SaidMessage, sentHere } from './account-bots';

/** A line of a person in an account's own room. */
export interface ChatLine {
  /** Id of the record. */
  id: string;
  account_id: string;
  platform: ChatMessage['platform'];
  platform_user_id: string;
  /** Keyed hash of the person. */
  person: string;
  person_key: string;
  message: ChatMessage;
  message_id: string | null;
  /** Time of the line, in milliseconds since 1970. */
  at_ms: number;
}

/** Records of chat lines of persons that are not older than {@link LINE_MS}. */
export const freshLines = (batch: readonly LoggedRecord[], now_ms: number): LoggedRecord[] =>
  batch.filter(
    (record) =>
      record.type === `${record.platform}:chat` &&
      record.subject !== null &&
      record.subject_key !== undefined &&
      now_ms - timeOf(record) <= LINE_MS,
  );

/** The line of a record; null of lines without an author, and of those from other rooms of a shared chat. */
export function chatLine(record: LoggedRecord): ChatLine | null {
  const message = holdable(readChatRecord(record), record.raw);
  if (message?.kind !== 'message' || message.shared_chat !== null || !message.author?.id) return null;
  return {
    ...{ id: record.id.toLowerCase(), account_id: record.account_id.toLowerCase(), platform: message.platform },
    ...{ platform_user_id: message.author.id, person: record.subject!, person_key: record.subject_key!, message },
    ...{ message_id: message.message_id, at_ms: timeOf(record) },
  };
}

/** The earlier one of the platform's time and ours. */
function timeOf({ occurred_at, received_at }: LoggedRecord): number {
  const times = [exactMicros(occurred_at), exactMicros(received_at)].flatMap((micros) => micros ?? []);
  return times.length === 0 ? Date.parse(received_at) : Math.floor(Math.min(...times) / 1000);
}

export const isBroadcaster = ({ platform_user_id, message }: Pick<ChatLine, 'platform_user_id' | 'message'>): boolean =>
  platform_user_id === message.channel_id;

export const shownName = ({ message }: Pick<ChatLine, 'message'>): string =>
  message.author!.display_name ?? message.author!.username ?? '';

const saidBy = ({ account_id, platform, message_id, at_ms, message: { text } }: ChatLine): SaidMessage => ({
  ...{ account_id, platform, message_id, at_ms, text },
});

/** Lines that no bot of this installation wrote; a bot that is the channel itself counts for what it sent from here. */
export async function ofPersons<Line extends ChatLine>(lines: readonly Line[], tx: Queryable): Promise<Line[]> {
  if (lines.length === 0) return [];
  const isBot = await installedBots(tx, lines);
  const isSentHere = await sentHere(tx, lines.filter((line) => isBot(line) && isBroadcaster(line)).map(saidBy));
  return lines.filter((line) => !isBot(line) || (isBroadcaster(line) && !isSentHere(saidBy(line))));
}

/** Lines of persons in channels with a bot. */
export async function answerable<Line extends ChatLine>(lines: readonly Line[], tx: Queryable): Promise<Line[]> {
  if (lines.length === 0) return [];
  const hasBot = await placesWithBot(tx, lines);
  return ofPersons(lines.filter(hasBot), tx);
}
