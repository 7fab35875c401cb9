import type { RequestContext } from '../../access/authentication/caller';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';
import { chatAct, type ChatActCommand, chatActStream, type ModerationAction } from '../../domain/chat/chat-acts';
import {
  type ChatModerationDraft,
  chatPerson,
  chatRecordText,
  chatRecordType,
  personsOf,
  PLAIN_MODERATION,
} from '../../domain/chat/chat-messages';
import { TOPICS } from '../../domain/common/records';
import { isPassing } from '../../kernel/failures';
import type { ChatCause } from './causes';
import { type KnownMessage, type KnownPerson, messageOf, personOf } from './known-people';
import { type EarlierSend, earlierSend } from './sends';
import { LoginRefused, type Speaker, speakerFor } from './speakers';

export interface ModerationRequest extends Omit<ChatActCommand, 'type' | 'now' | 'action'> {
  action: ModerationAction;
  /** The member that acts by their login; null: the bot acts. */
  user_id: string | null;
  live_chat_id: string | null;
  /** Login of the person, for where the account's history does not know them. */
  username?: string | null;
  /**
   * The act belongs to a job: a call without an answer is not repeated, and a call whose record could not be published
   * succeeds with `noted: false`.
   */
  once?: boolean;
}

export type ModerationResult =
  | { success: true; noted?: false }
  /** `passing`: a limit, or a platform that was not reached; a later try may succeed. */
  | { success: false; details: string; outcome_unknown: boolean; passing?: true };

export type ModerationServices = Pick<
  Services,
  | 'db'
  | 'events'
  | 'secrets'
  | 'texts'
  | 'settings'
  | 'connection_tokens'
  | 'logins'
  | 'chat'
  | 'spendYoutube'
  | 'records'
  | 'awaitShown'
>;

/** Whether an act was published and noted for the audit log. */
export const isNoted = (
  { events }: Pick<ModerationServices, 'events'>,
  { act_id }: Pick<ModerationRequest, 'act_id'>,
) => load(events, chatAct, chatActStream(act_id));

/** Publishes and notes an act whose call was answered earlier. */
export async function noteEarlier(
  services: ModerationServices,
  cause: ChatCause,
  request: ModerationRequest,
  { channel_id, message_id: ban_id, asked_at }: EarlierSend,
): Promise<ModerationResult> {
  const speaker = await speakerFor(services, request).catch((error: unknown) => {
    if (error instanceof LoginRefused) return { user_id: null, username: null };
    throw error;
  });
  const { target, message } = await factsOf(services, request);
  const called = { channel_id: channel_id!, speaker, target, message, ban_id, called_at: new Date(asked_at) };
  return noteCall(services, cause, request, called);
}

/** Publishes and notes the act of a job when its call was answered. Returns whether there was such a call. */
export async function noteModeration(
  services: ModerationServices,
  cause: ChatCause,
  request: ModerationRequest,
): Promise<boolean> {
  if (await isNoted(services, request)) return true;
  const earlier = await earlierSend(services.db, request.account_id, request.act_id);
  if (earlier?.status !== 'sent') return false;
  await noteEarlier(services, cause, { ...request, once: false }, earlier);
  return true;
}

/** Publishes an answered call as a record of the chat, and notes it for the audit log. */
export async function noteCall(
  services: ModerationServices,
  { act, context }: ChatCause,
  request: ModerationRequest,
  performed: PerformedAct,
): Promise<ModerationResult> {
  const { user_id: _user, live_chat_id: _chat, username: _name, once = false, ...noted } = request;
  try {
    await published(services, context, request, performed);
    await act(chatAct, chatActStream(request.act_id), { type: 'chat:moderate', ...noted });
  } catch (error) {
    if (once && isPassing(error)) return { success: true, noted: false };
    throw error;
  }
  return { success: true };
}

/** The message and person of the act, as far as the account's history knows them. */
export async function factsOf(
  { db }: Pick<ModerationServices, 'db'>,
  { account_id, platform, action, platform_user_id, message_id }: ModerationRequest,
): Promise<Pick<PerformedAct, 'target' | 'message'>> {
  if (action !== 'DELETE')
    return { target: await personOf(db, { account_id, platform, platform_user_id: platform_user_id! }), message: null };
  const message = await messageOf(db, { account_id, platform, message_id: message_id! });
  return { target: message?.author ?? null, message };
}

export interface PerformedAct {
  channel_id: string;
  speaker: Pick<Speaker, 'user_id' | 'username'>;
  target: KnownPerson | null;
  message: KnownMessage | null;
  ban_id: string | null;
  called_at: Date;
}

function draftOf(
  request: ModerationRequest,
  { channel_id, speaker, target, message, ban_id, called_at }: PerformedAct,
): ChatModerationDraft {
  const { platform, action, platform_user_id, message_id, duration_secs, reason } = request;
  const { username = null, display_name = null, avatar_url = null } = target ?? {};
  const id = platform_user_id ?? target?.platform_user_id ?? null;
  const ends_at = duration_secs === null ? null : new Date(called_at.getTime() + duration_secs * 1000).toISOString();
  return {
    ...PLAIN_MODERATION,
    ...{ platform, channel_id, action: action.toLowerCase(), message_id, reason, duration_secs, ends_at, ban_id },
    target: id === null ? null : chatPerson(id, username, display_name, avatar_url),
    moderator: chatPerson(speaker.user_id, speaker.username),
    text: message?.text ?? null,
  };
}

/** Publishes the act as the platform's own records are, and waits until it is shown. */
async function published(
  { records, awaitShown }: ModerationServices,
  context: RequestContext,
  request: ModerationRequest,
  performed: PerformedAct,
): Promise<void> {
  const record = actRecord(request, draftOf(request, performed), performed.called_at);
  const ends = await records.append(TOPICS.chat_events, [{ ...record, trace: context.trace }]);
  await awaitShown(context, { topic: TOPICS.chat_events, ends: [...ends], projections: ['chat-live'] });
}

/** The record of an act of ours. */
export function actRecord(
  { act_id, account_id, platform }: Pick<ModerationRequest, 'act_id' | 'account_id' | 'platform'>,
  draft: ChatModerationDraft,
  at = new Date(),
) {
  const [about = null, ...others] = personsOf(draft).map((id) => `${platform}:${id}`);
  return {
    ...{ id: act_id, account_id, type: chatRecordType(draft), platform, external_id: `lumio:${act_id}` },
    ...{ occurred_at: at.toISOString(), received_at: new Date().toISOString(), subject: about },
    ...(others.length > 0 && { subjects: others }),
    ...{ raw: chatRecordText(draft, JSON.stringify({ act_id })), trace: null },
  };
}
