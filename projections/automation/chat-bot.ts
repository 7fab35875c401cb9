import { ANSWER_COMMAND, lineExpiry, LINE_MS, LOOK_UP_FOLLOWER } from '../../domain/automation/command-answers';
import { nameKey } from '../../domain/automation/bot-commands';
import { isWeaker, shownRole } from '../../domain/automation/bot-roles';
import { commandIn } from '../../domain/automation/expansion';
import { type ChatMessage, readChatRecord } from '../../domain/chat/chat-messages';
import { TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import type { JobRequest } from '../../kernel/job';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { holdable } from '../../kernel/texts';
import { memberText } from '../../lib/json/members';
import { exactMicros } from '../../lib/time/instants';
import { installedBots, placesWithBot, sentHere } from '../../services/automation/account-bots';
import { takeUses } from '../../services/automation/command-uses';
import { commandsNamed, type EffectiveCommand } from '../../services/automation/effective-commands';
import { knownFollowers } from '../../services/automation/followers';

/**
 * Lets bots answer commands in chats. It has no rows that a rebuild makes: cooldowns and counts are decided once, in
 * the order of the records.
 */
export const chatBot = projection({
  name: 'chat-bot',
  version: 1,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [],
  jobs: [ANSWER_COMMAND, LOOK_UP_FOLLOWER],
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue, applied } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const lines = linesOf(
      batch.filter(({ id }) => applied?.has(id.toLowerCase()) !== true),
      Date.now(),
    );
    const asked = await jobsOf(lines, tx);
    if (asked.length > 0) await enqueue(tx, asked);
    return [];
  },
});

/** A line of a chat that may use a command. */
interface Line {
  id: string;
  account_id: string;
  platform: ChatMessage['platform'];
  platform_user_id: string;
  person: string;
  person_key: string;
  message: ChatMessage;
  message_id: string | null;
  key: string;
  args: string;
  at_ms: number;
}

/** Fresh lines of persons in the accounts' own rooms that begin as a command. */
function linesOf(batch: readonly LoggedRecord[], now_ms: number): Line[] {
  return batch.flatMap((record) => {
    const { platform, type, subject, subject_key, raw } = record;
    if (type !== `${platform}:chat` || subject === null || subject_key === undefined) return [];
    const at_ms = timeOf(record);
    if (now_ms - at_ms > LINE_MS || memberText(raw, ['text'])?.includes('!') !== true) return [];
    const message = holdable(readChatRecord(record), raw);
    if (message?.kind !== 'message' || message.shared_chat !== null || !message.author?.id) return [];
    const used = commandIn(message.text);
    if (used === null) return [];
    return {
      ...{ id: record.id.toLowerCase(), account_id: record.account_id.toLowerCase(), platform: message.platform },
      ...{ platform_user_id: message.author.id, person: subject, person_key: subject_key, message, at_ms },
      ...{ message_id: message.message_id, key: nameKey(used.word), args: used.args },
    };
  });
}

/** The earlier one of the platform's time and ours. */
function timeOf({ occurred_at, received_at }: LoggedRecord): number {
  const times = [exactMicros(occurred_at), exactMicros(received_at)].flatMap((micros) => micros ?? []);
  return times.length === 0 ? Date.parse(received_at) : Math.floor(Math.min(...times) / 1000);
}

interface Use extends Line {
  command: EffectiveCommand;
}

async function jobsOf(lines: readonly Line[], tx: Queryable): Promise<JobRequest[]> {
  if (lines.length === 0) return [];
  const commandOf = await commandsNamed(tx, lines);
  const uses = lines.flatMap((line): Use[] => {
    const command = commandOf(line);
    return command?.enabled === true && command.platforms.includes(line.platform) ? [{ ...line, command }] : [];
  });
  const answered = await answerable(uses, tx);
  if (answered.length === 0) return [];
  const isWaiting = await waitingForFollows(answered, tx);
  const waiting = answered.filter((use) => isWaiting(use) === true);
  const ready = answered.filter((use) => isWaiting(use) === false);
  const counts = await takeUses(
    tx,
    ready.map(({ account_id, person, at_ms, command }) => ({ account_id, person, at_ms, ...command })),
  );
  return [
    ...waiting.map((use) => request(LOOK_UP_FOLLOWER, use, {})),
    ...ready.flatMap((use, at) => (counts[at] === null ? [] : request(ANSWER_COMMAND, use, { count: counts[at]! }))),
  ];
}

/** Uses in channels with a bot that no bot of this installation wrote. */
async function answerable(uses: readonly Use[], tx: Queryable): Promise<Use[]> {
  if (uses.length === 0) return [];
  const hasBot = await placesWithBot(tx, uses);
  const isBot = await installedBots(tx, uses);
  const isSentHere = await sentHere(
    tx,
    uses.filter((use) => isBot(use) && isBroadcaster(use)),
  );
  return uses.filter((use) => hasBot(use) && (!isBot(use) || (isBroadcaster(use) && !isSentHere(use))));
}

const isBroadcaster = ({ platform_user_id, message }: Line): boolean => platform_user_id === message.channel_id;

/** Whether a use waits for the platform's answer about a follow; undefined where the role is too weak. */
async function waitingForFollows(uses: readonly Use[], tx: Queryable): Promise<(use: Use) => boolean | undefined> {
  const isStrong = ({ message, command }: Use) => !isWeaker(shownRole(message), command.min_role);
  const asked = uses.filter((use) => !isStrong(use) && use.command.min_role === 'follower');
  const follows = await knownFollowers(tx, asked);
  return (use) => {
    if (isStrong(use)) return false;
    const known = use.command.min_role === 'follower' ? follows(use) : false;
    return known === undefined ? true : known ? false : undefined;
  };
}

function request(name: string, use: Use, more: object): JobRequest {
  const { id, account_id, platform, platform_user_id, person, at_ms, message, args, command } = use;
  const payload = {
    ...{ account_id, command_id: command.command_id, platform, cause_id: id, person, at_ms, ...more },
    ...{ channel_id: message.channel_id, reply_to: message.message_id, live_chat_id: message.live_chat_id },
    ...{ platform_user_id, user: message.author!.display_name ?? message.author!.username ?? '', args },
  };
  return { name, key: id, payload, expires_at: lineExpiry(at_ms) };
}
