import { START_AUTOMATION } from '../../domain/automation/automation-runs';
import { nameKey } from '../../domain/automation/bot-commands';
import { isWeaker, shownRole } from '../../domain/automation/bot-roles';
import { ANSWER_COMMAND, lineExpiry, LOOK_UP_FOLLOWER } from '../../domain/automation/command-answers';
import { commandIn } from '../../domain/automation/expansion';
import { onBotCommand } from '../../domain/automation/nodes/triggers';
import type { Queryable } from '../../engines/postgres/port';
import type { JobRequest } from '../../kernel/job';
import { answerable, type ChatLine, shownName } from './chat-lines';
import { takeUses } from './command-uses';
import { commandsNamed, type EffectiveCommand } from './effective-commands';
import { knownFollowers } from './followers';
import { lineStart } from './runs/line-starts';

interface Use extends ChatLine {
  key: string;
  args: string;
  command: EffectiveCommand;
}

/** Jobs that answer the commands of lines, start their automations, or look up whether their authors follow. */
export async function commandJobs(lines: readonly ChatLine[], tx: Queryable): Promise<JobRequest[]> {
  const named = lines.flatMap((line) => {
    const used = commandIn(line.message.text);
    return used === null ? [] : [{ ...line, key: nameKey(used.word), args: used.args }];
  });
  if (named.length === 0) return [];
  const commandOf = await commandsNamed(tx, named);
  const uses = named.flatMap((line): Use[] => {
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
    ...ready.flatMap((use, at) => (counts[at] === null ? [] : answerOf(use, counts[at]!))),
  ];
}

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

function answerOf(use: Use, count: number): JobRequest {
  const { automation_id } = use.command;
  return automation_id === null ? request(ANSWER_COMMAND, use, { count }) : startRequest(use, automation_id);
}

function startRequest(use: Use, automation_id: string): JobRequest {
  const { id, account_id, platform, platform_user_id, person, at_ms, message, args } = use;
  const payload = lineStart({
    ...{ account_id, automation_id, node_ids: [], trigger: onBotCommand.type, cause_id: id, platform, person, at_ms },
    ...{ platform_user_id, user: shownName(use), role: shownRole(message), args },
    ...{ channel_id: message.channel_id, message_id: message.message_id, live_chat_id: message.live_chat_id },
  });
  return { name: START_AUTOMATION, key: payload.start_key, payload };
}

function request(name: string, use: Use, more: object): JobRequest {
  const { id, account_id, platform, platform_user_id, person, at_ms, message, args, command } = use;
  const payload = {
    ...{ account_id, command_id: command.command_id, platform, cause_id: id, person, at_ms, ...more },
    ...{ channel_id: message.channel_id, reply_to: message.message_id, live_chat_id: message.live_chat_id },
    ...{ platform_user_id, user: shownName(use), args },
  };
  return { name, key: id, payload, expires_at: lineExpiry(at_ms) };
}
