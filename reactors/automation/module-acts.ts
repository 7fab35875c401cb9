import { job, type JobTools } from '../../app/job';
import { moduleFlag, moduleOwner } from '../../domain/automation/bot-modules';
import {
  ACT_ON_LINE,
  ACTED_PERSON,
  ActedLine,
  type ModuleAction,
  NOTE_MODULE_ACT,
  reasonOf,
} from '../../domain/automation/modules/module-acts';
import type { ModerationAction } from '../../domain/chat/chat-acts';
import { DomainError } from '../../kernel/errors';
import { isPassing } from '../../kernel/failures';
import { type EffectTools, NotSent, OutcomeUnknown } from '../../kernel/job';
import { placesWithBot } from '../../services/automation/account-bots';
import { accountFlags } from '../../services/automation/account-flags';
import { beforeCall } from '../../services/automation/called';
import { actId, endAct, noteWarning, sendWarning } from '../../services/automation/modules/warnings';
import { LONGEST_TIMEOUT } from '../../services/chat/moderate-chat';
import type { ModerationRequest } from '../../services/chat/moderation-notes';

const PAUSES = { first_ms: 1_000, most_ms: 5_000 };
const TRIES = 30;
const CALLS: Readonly<Record<Exclude<ModuleAction, 'warn'>, ModerationAction>> = {
  ...{ delete: 'DELETE', timeout: 'TIMEOUT', ban: 'BAN' },
};
/** Refusals of a line whose message or author the history has not stored yet. */
const NOT_STORED: ReadonlySet<string> = new Set(['MESSAGE_NOT_FOUND', 'PERSON_NOT_FOUND']);

/** Whether the module still acts there. Null members name an erased person. */
async function isWanted(line: ActedLine, { db }: Pick<JobTools, 'db'>): Promise<boolean> {
  const { account_id, module_name, platform_user_id } = line;
  if (platform_user_id === null) return false;
  const flag = moduleFlag(module_name);
  const rows = await db.query(
    'select 1 as one from bot_modules where account_id = $1 and module_name = $2 and enabled',
    [account_id, module_name],
    'module-is-on',
  );
  if (rows.length === 0 || !(await accountFlags(db, [account_id], [flag]))(flag, account_id)) return false;
  return (await placesWithBot(db, [line]))(line);
}

/** Publishes an act of a module that was carried out, however long the log of records is unavailable. */
export const noteModuleAct = job({
  name: NOTE_MODULE_ACT,
  payload: ActedLine,
  personal: ACTED_PERSON,
  after_unknown: 'repeat',
  async run(line, _attempt, tools) {
    if (line.platform_user_id === null) return;
    if (line.action === 'warn') await noteWarning(tools, line);
    else await tools.chats.noteModeration(actorOf(line), requestOf(line, line.action));
  },
});

const noteLater = ({ enqueue }: EffectTools, line: ActedLine) =>
  enqueue(noteModuleAct, { key: line.cause_id, payload: line });

/** Carries out the act of a module on a line. */
export const actOnLine = job({
  name: ACT_ON_LINE,
  payload: ActedLine,
  personal: ACTED_PERSON,
  retries: TRIES,
  after_unknown: 'end',
  pauses: PAUSES,
  timeout_ms: 15_000,
  lane: ({ account_id, platform }) => `${account_id}:${platform}`,
  owner: ({ account_id, module_name }) => moduleOwner(account_id, module_name),
  isWanted,
  onUnknown: (line) => (tx) => endAct(tx, line, 'unknown'),
  async run(line, _attempt, tools) {
    const { account_id, module_name, platform } = line;
    const done = await (line.action === 'warn' ? warn(line, tools) : moderate(line, line.action, tools));
    if (done.problem === null)
      return async (tx, effects) => {
        await endAct(tx, line, 'done');
        if (!done.noted) await noteLater(effects, line);
      };
    tools.log.info({ account_id, platform, module_name, reason: done.problem }, 'a module did not act');
    return (tx) => endAct(tx, line, 'refused');
  },
});

/** `problem`: why the platform does not carry out the act. */
type Done = { problem: null; noted: boolean } | { problem: string };

/** @throws NotSent, OutcomeUnknown */
async function warn(line: ActedLine, tools: JobTools): Promise<Done> {
  try {
    const result = await beforeCall(() => sendWarning(tools, line));
    if (!result.sent && result.passing) throw new NotSent(result.error);
    if (!result.sent && result.error_code === 'internal_error') throw new OutcomeUnknown(result.error);
    if (!result.sent) return { problem: result.error_code };
  } catch (error) {
    if (error instanceof DomainError) return { problem: error.reason };
    throw error;
  }
  try {
    await noteWarning(tools, line);
  } catch (error) {
    if (isPassing(error)) return { problem: null, noted: false };
    throw error;
  }
  return { problem: null, noted: true };
}

const actorOf = ({ module_name }: ActedLine): string => `bot_module:${module_name}`;

function requestOf(line: ActedLine, action: Exclude<ModuleAction, 'warn'>): ModerationRequest {
  const { account_id, platform, message_id, live_chat_id, platform_user_id } = line;
  const duration_secs = Math.min(line.timeout_seconds, LONGEST_TIMEOUT[platform] ?? Infinity);
  return {
    ...{ account_id, user_id: null, act_id: actId(line), platform, action: CALLS[action], live_chat_id },
    platform_user_id: action === 'delete' ? null : platform_user_id,
    message_id: action === 'delete' ? message_id : null,
    duration_secs: action === 'timeout' ? duration_secs : null,
    reason: reasonOf(line),
  };
}

/** As {@link warn}. */
async function moderate(
  line: ActedLine,
  action: Exclude<ModuleAction, 'warn'>,
  { chats }: Pick<JobTools, 'chats'>,
): Promise<Done> {
  try {
    // A call that was kept is not made again.
    const result = await beforeCall(() => chats.moderate(actorOf(line), requestOf(line, action)));
    if (result.success) return { problem: null, noted: result.noted ?? true };
    if (result.passing) throw new NotSent(result.details);
    if (result.outcome_unknown) throw new OutcomeUnknown(result.details);
    return { problem: result.details };
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (NOT_STORED.has(error.reason)) throw new NotSent('the history has not stored the line yet');
    return { problem: error.reason };
  }
}
