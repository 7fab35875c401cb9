import { v5 } from 'uuid';
import type { JobTools } from '../../../app/job';
import type { LineModule } from '../../../domain/automation/bot-modules';
import { cutTo } from '../../../domain/automation/expansion';
import { type ActedLine, MODULE_LABELS, reasonOf } from '../../../domain/automation/modules/module-acts';
import { chatPerson, PLAIN_MODERATION } from '../../../domain/chat/chat-messages';
import { TOPICS } from '../../../domain/common/records';
import type { Queryable } from '../../../engines/postgres/port';
import { personOf } from '../../chat/known-people';
import { actRecord } from '../../chat/moderation-notes';
import type { SendResult } from '../../chat/send-chat';

/** Namespace of the ids of acts; any fixed UUID does. */
const ACTS = '6f6f2f0e-54c7-4d57-8a6f-2d3f7a0e9c11';

/** Id of the act of a module on a line, and of its warning. */
export const actId = ({ cause_id }: Pick<ActedLine, 'cause_id'>): string => v5(cause_id, ACTS);

const DEFAULT_TEXTS: Readonly<Record<LineModule, string>> = {
  link_protection: 'Please write no links here.',
  spam_protection: 'Please write no spam here.',
  word_filter: 'Please mind your words.',
};

/** Answers a line with the warning of its module. */
export async function sendWarning({ db, chats }: Pick<JobTools, 'db' | 'chats'>, line: ActedLine): Promise<SendResult> {
  const { account_id, module_name, platform, message_id, live_chat_id } = line;
  const [row] = await db.query<{ text: string | null }>(
    `select config ->> 'warning_text' as text from bot_modules where account_id = $1 and module_name = $2`,
    [account_id, module_name],
    'module-warning',
  );
  const text = cutTo(row?.text ?? DEFAULT_TEXTS[module_name], chats.maxCharacters(platform));
  return chats.send({
    ...{ account_id, user_id: null, cause_id: actId(line), platform, text, reply_to: message_id, live_chat_id },
    ...{ for_source_only: false, tries_again: true },
  });
}

/** Publishes a warning as an entry of the moderation log. */
export async function noteWarning({ db, records }: Pick<JobTools, 'db' | 'records'>, line: ActedLine): Promise<void> {
  const { account_id, module_name, platform, channel_id, message_id } = line;
  const platform_user_id = line.platform_user_id!;
  const person = await personOf(db, { account_id, platform, platform_user_id });
  const { username = null, display_name = null, avatar_url = null } = person ?? {};
  const draft = {
    ...PLAIN_MODERATION,
    ...{ platform, channel_id, action: 'warn', message_id, reason: reasonOf(line) },
    target: chatPerson(platform_user_id, username, display_name, avatar_url),
    moderator: chatPerson(null, MODULE_LABELS[module_name]),
  };
  await records.append(TOPICS.chat_events, [actRecord({ act_id: actId(line), account_id, platform }, draft)]);
}

/** Stores the outcome of an act. */
export const endAct = (tx: Queryable, { account_id, cause_id }: ActedLine, status: 'done' | 'refused' | 'unknown') =>
  tx.query('update bot_module_acts set status = $3 where account_id = $1 and id = $2', [account_id, cause_id, status]);

/** Deletes acts that no later warning counts. Returns their number. */
export async function sweepActs(db: Pick<Queryable, 'query'>): Promise<number> {
  const gone = await db.query('delete from bot_module_acts where expires_at < now() returning 1 as one');
  return gone.length;
}
