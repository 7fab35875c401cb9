import { v5 } from 'uuid';
import type { ModerationAction } from '../../../domain/chat/chat-acts';
import { isPlatform, type Platform } from '../../../domain/common/vendors';
import type { Queryable } from '../../../engines/postgres/port';
import { DomainError } from '../../../kernel/errors';
import { NotSent } from '../../../kernel/job';
import { memberAt, parsedJson } from '../../../lib/json/paths';
import { LONGEST_TIMEOUT } from '../../chat/moderate-chat';
import type { ModerationResult } from '../../chat/moderation-notes';
import { ownChannel } from '../../connections/own-channel';
import { placesWithBot } from '../account-bots';
import { done, type Executor, failed, type Outcome, type StepTools, type StepWork } from './executor';

/** Actor of acts in the audit log. */
const ACTOR = 'automation';
const ACTIONS: Readonly<Record<string, ModerationAction>> = { delete: 'DELETE', timeout: 'TIMEOUT', ban: 'BAN' };
const TIMEOUT_SECONDS = 600;
/** Refusals of a line whose message or author the history has not stored yet. */
const NOT_STORED: ReadonlySet<string> = new Set(['MESSAGE_NOT_FOUND', 'PERSON_NOT_FOUND']);

async function hasBot({ db }: StepTools, account_id: string, platform: Platform): Promise<boolean> {
  return (await placesWithBot(db, [{ account_id, platform }]))({ account_id, platform });
}

/** Outcome of a call to a chat. @throws NotSent where a later try may succeed */
async function outcomeOf(call: () => Promise<ModerationResult>, passing: ReadonlySet<string>): Promise<Outcome> {
  try {
    const result = await call();
    // A later try notes the act, and does not repeat the call.
    if (result.success && result.noted === false) throw new NotSent('the act is not noted yet');
    if (result.success) return done;
    if (result.passing) throw new NotSent(result.details);
    return result.outcome_unknown ? { status: 'unknown', error: 'no_answer' } : failed('refused');
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    if (passing.has(error.reason)) throw new NotSent('the history has not stored the line yet');
    return failed(error.reason.toLowerCase());
  }
}

/** Author of a cause, as the call of a platform names them. */
interface CauseAuthor {
  platform: string;
  id: string;
  /** Login that an event of Trovo names: the history knows only those who write. */
  username: string | null;
  live_chat_id: string | null;
}

/** The author of the cause; undefined without one. */
function authorOf({ cause }: StepWork): CauseAuthor | undefined {
  const [platform = '', ...rest] = (cause.subject ?? '').split(':');
  const id = cause.author?.id ?? rest.join(':');
  const at = cause.platform ?? platform;
  if (id === '') return undefined;
  const payload = cause.event === null ? null : parsedJson(cause.event.raw);
  const text = (...path: string[]): string | null => {
    const value = memberAt(payload, path);
    return typeof value === 'string' && value !== '' ? value : null;
  };
  const username = at === 'trovo' ? (text('user_name') ?? text('data', 'user_name')) : null;
  const live_chat_id = cause.live_chat_id ?? (at === 'youtube' ? text('snippet', 'liveChatId') : null);
  return { platform: at, id, username, live_chat_id };
}

export const moderateAuthor: Executor = {
  calls: true,
  input: ({ config }) => ({ ...config }),
  async run(work, input, tools) {
    const { account_id, step_id, cause } = work;
    const { action, timeout_seconds = TIMEOUT_SECONDS } = input as { action: string; timeout_seconds?: number };
    const author = authorOf(work);
    if (author === undefined) return failed('no_author');
    if (action === 'delete' && cause.message_id === null) return failed('no_message');
    const { platform, id, username, live_chat_id } = author;
    if (!isPlatform(platform)) return failed('unsupported');
    if (!(await hasBot(tools, account_id, platform))) return failed('no_bot');
    // No platform bans the channel itself, which is the author of its own raids.
    if (action !== 'delete' && (await ownChannel(tools.db, account_id, platform))?.channel_id === id)
      return failed('protected_user');
    const most = LONGEST_TIMEOUT[platform] ?? Infinity;
    const call = () =>
      tools.chats.moderate(ACTOR, {
        ...{ account_id, user_id: null, act_id: step_id, platform, action: ACTIONS[action]!, reason: null },
        platform_user_id: action === 'delete' ? null : id,
        message_id: action === 'delete' ? cause.message_id : null,
        duration_secs: action === 'timeout' ? Math.min(timeout_seconds, most) : null,
        ...{ live_chat_id, username },
      });
    return outcomeOf(call, cause.message_id === null ? new Set() : NOT_STORED);
  },
};

/** The channel of a person by name or id: a name that the account's chats know comes first. */
async function channelOf(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, user }: { account_id: string; platform: Platform; user: string },
): Promise<string | undefined> {
  const [row] = await db.query<{ id: string }>(
    `select platform_user_id as id from platform_users
     where account_id = $1 and platform = $2 and platform_user_id is not null
       and lower($3) in (lower(username), lower(display_name))
     order by (lower(username) = lower($3)) desc, last_seen_at desc limit 1`,
    [account_id, platform, user],
    'shout-out-person',
  );
  return row?.id ?? (/^\d+$/.test(user) ? user : undefined);
}

/** Platform of shout-outs for causes without one. */
const SHOUT_OUT_PLATFORM = 'twitch';

export const shoutOutUser: Executor = {
  calls: true,
  input: ({ config, expand }) => ({ user: expand(config.user as string) }),
  async run({ account_id, step_id, cause }, input, tools) {
    const user = (input.user as string).trim().replace(/^@/, '');
    if (user === '') return failed('no_user');
    const platform = cause.platform ?? SHOUT_OUT_PLATFORM;
    if (!isPlatform(platform)) return failed('unsupported');
    if (!(await hasBot(tools, account_id, platform))) return failed('no_bot');
    const { author } = cause;
    const target_channel_id =
      author?.id && author.name?.toLowerCase() === user.toLowerCase()
        ? author.id
        : await channelOf(tools.db, { account_id, platform, user });
    if (target_channel_id === undefined) return failed('person_not_found');
    const cause_id = v5(platform, step_id);
    const shoutOut = { account_id, user_id: null, cause_id, platform, target_channel_id };
    return outcomeOf(() => tools.chats.shoutOut(shoutOut), new Set());
  },
};
