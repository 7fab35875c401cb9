import { z } from 'zod';
import { job, type JobTools } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { BOT_COMMAND_EVENTS, botCommandOwner } from '../../domain/automation/bot-commands';
import {
  ANSWER_COMMAND,
  lineExpiry,
  LOOK_UP_FOLLOWER,
  PERSONAL,
  UsedCommand,
} from '../../domain/automation/command-answers';
import { onBotCommand } from '../../domain/automation/nodes/triggers';
import { DomainError } from '../../kernel/errors';
import { NotSent } from '../../kernel/job';
import { placesWithBot } from '../../services/automation/account-bots';
import { expandedText } from '../../services/automation/answer-text';
import { beforeCall } from '../../services/automation/called';
import { deleteUsesOf, takeUses } from '../../services/automation/command-uses';
import { effectiveCommand } from '../../services/automation/effective-commands';
import { isLookedUp, keyOfAuthor, knownFollowers } from '../../services/automation/followers';
import { lineStart } from '../../services/automation/runs/line-starts';
import type { SendResult } from '../../services/chat/send-chat';
import { startAutomationRun } from './automation-runs';

/** Pauses between tries: a line is answered within 30 s. */
const PAUSES = { first_ms: 1_000, most_ms: 5_000 };
const TRIES = 30;

type Used = Pick<UsedCommand, 'account_id' | 'command_id' | 'platform'>;

/** Account and destination. */
const lane = ({ account_id, platform }: Used) => `${account_id}:${platform}`;
const owner = ({ command_id }: Used) => botCommandOwner(command_id);

/** Whether the command is still answered there. Null members name an erased person, whom no bot answers. */
async function isWanted(used: UsedCommand, { db }: Pick<JobTools, 'db'>): Promise<boolean> {
  if (used.platform_user_id === null) return false;
  const [command, hasBot] = await Promise.all([effectiveCommand(db, used), placesWithBot(db, [used])]);
  return command?.enabled === true && command.platforms.includes(used.platform) && hasBot(used);
}

/** Sends the answer of a command into the chat of its line. */
export const answerCommand = job({
  name: ANSWER_COMMAND,
  payload: { ...UsedCommand, count: z.int() },
  personal: PERSONAL,
  retries: TRIES,
  after_unknown: 'end',
  pauses: PAUSES,
  timeout_ms: 15_000,
  lane,
  owner,
  isWanted,
  onUnknown:
    ({ account_id, cause_id }) =>
    (tx) =>
      tx.query(`update chat_sends set status = 'unknown' where account_id = $1 and id = $2 and status = 'asked'`, [
        account_id,
        cause_id,
      ]),
  async run(used, _attempt, { db, texts, chats, log }) {
    const { account_id, platform, cause_id, reply_to, live_chat_id } = used;
    const text = await beforeCall(async () => {
      const command = await effectiveCommand(db, used);
      return expandedText({ db, texts }, command?.response ?? '', used, chats.maxCharacters(platform));
    });
    if (text === '') return;
    let result: SendResult;
    try {
      // A send that was kept is not sent again.
      result = await beforeCall(() =>
        chats.send({
          ...{ account_id, user_id: null, cause_id, platform, text, reply_to, live_chat_id },
          ...{ for_source_only: false, tries_again: true },
        }),
      );
    } catch (error) {
      if (!(error instanceof DomainError)) throw error;
      log.info({ account_id, platform, reason: error.reason }, 'a command was not answered');
      return;
    }
    if (result.sent) return;
    if (result.passing) throw new NotSent(result.error);
    log.info({ account_id, platform, reason: result.error_code }, 'a command was not answered');
  },
});

/** Asks the platform whether the author of a line follows, and then decides its use. */
export const lookUpFollower = job({
  name: LOOK_UP_FOLLOWER,
  payload: UsedCommand,
  personal: PERSONAL,
  retries: TRIES,
  after_unknown: 'repeat',
  pauses: PAUSES,
  timeout_ms: 15_000,
  lane,
  owner,
  isWanted,
  async run(used, _attempt, { db, chats }) {
    const { account_id, platform } = used;
    const platform_user_id = used.platform_user_id!;
    const author = { account_id, platform, platform_user_id };
    const person_key = await keyOfAuthor(db, author);
    await chats.enrich(author);
    const known = { ...author, person_key };
    const follows = (await knownFollowers(db, [known]))(known);
    if (follows === undefined && (await isLookedUp(db, known)))
      throw new NotSent('a look-up of the author is not finished');
    const command = await effectiveCommand(db, used);
    if (follows !== true || command === undefined) return;
    return async (tx, { enqueue }) => {
      const [count] = await takeUses(tx, [{ ...command, account_id, person: used.person, at_ms: used.at_ms }]);
      if (count === null || count === undefined) return;
      if (command.automation_id !== null) {
        const { user, args, channel_id, reply_to, live_chat_id, cause_id, person, at_ms } = used;
        const start = lineStart({
          ...{ account_id, automation_id: command.automation_id, node_ids: [], trigger: onBotCommand.type, cause_id },
          ...{ platform, platform_user_id, user: user ?? '', role: 'follower', person, args, channel_id, live_chat_id },
          ...{ message_id: reply_to, at_ms },
        });
        await enqueue(startAutomationRun, { key: start.start_key, payload: start });
        return;
      }
      const payload = { ...used, count };
      await enqueue(answerCommand, { key: used.cause_id, payload, expires_at: lineExpiry(used.at_ms) });
    };
  },
});

/** The waiting answers of a command end with it, and so do its counts. */
export const botCommandEnds = reactor({
  name: 'bot-command-ends',
  from: 'beginning',
  events: [BOT_COMMAND_EVENTS, ACCOUNT_EVENTS],
  on: {
    'bot_command:updated': ({ command_id, enabled }, { cancel }) => {
      if (!enabled) cancel(botCommandOwner(command_id));
    },
    'bot_command:deleted': ({ command_id }, { cancel, keep }) => {
      cancel(botCommandOwner(command_id));
      for (const statement of deleteUsesOf('command_id')) keep(statement, [command_id]);
    },
    // Each try of a waiting answer finds neither the command nor its channel.
    'account:dissolved': ({ account_id }, { keep }) => {
      for (const statement of deleteUsesOf('account_id')) keep(statement, [account_id]);
    },
  },
});
