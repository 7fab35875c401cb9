import type { RequestContext } from '../../access/authentication/caller';
import type { Services } from '../../app/services';
import type { ChatCause } from './causes';
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
import type { Platform } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { type ChatLogin, ChatRefused, type ChatVendor } from '../../vendors/chat/port';
import { banOf, type KnownMessage, type KnownPerson, messageOf, personOf } from './known-people';
import { ownChannel } from '../connections/own-channel';
import { TokenUnavailable } from '../connections/connection-tokens';
import { liveChatFor } from './live-chats';
import { LoginRefused, type Speaker, speakerFor } from './speakers';
import { COSTS } from '../../vendors/youtube/port';

export interface ModerationRequest extends Omit<ChatActCommand, 'type' | 'now' | 'action'> {
  action: ModerationAction;
  /** The member that acts by their login; null: the bot acts. */
  user_id: string | null;
  live_chat_id: string | null;
}

export type ModerationResult =
  | { success: true }
  /** `passing`: a limit, or a platform that was not reached; a later try may succeed. */
  | { success: false; details: string; outcome_unknown: boolean; passing?: true };

type ModerationServices = Pick<
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

/** Longest timeout of a platform in seconds. Source: spec doc2 §4.3, vendors.md §2. */
export const LONGEST_TIMEOUT: Partial<Record<Platform, number>> = { twitch: 1_209_600, youtube: 86_400 };
/** Names that Trovo's commands carry. */
const COMMAND_NAME = /^\w+$/;

const failed = (details: string, outcome_unknown = false): ModerationResult & { success: false } => ({
  success: false,
  details,
  outcome_unknown,
});

/**
 * Carries out a moderator's act on a platform, publishes it as a record of the chat, and notes it for the audit log. A
 * repetition of a noted act does nothing; any other one acts again, and the platform ends in the same state.
 * @throws DomainError UNSUPPORTED, CHANNEL_NOT_CONNECTED, MESSAGE_NOT_FOUND, PERSON_NOT_FOUND, BAN_NOT_FOUND,
 * PROTECTED_USER, TIMEOUT_TOO_LONG, and as {@link liveChatFor}
 */
export async function moderateChat(
  services: ModerationServices,
  { act, context }: ChatCause,
  request: ModerationRequest,
): Promise<ModerationResult> {
  const { account_id, platform, action } = request;
  const stream = chatActStream(request.act_id);
  if (await load(services.events, chatAct, stream)) return { success: true };
  const vendor = services.chat.get(platform)!;
  const channel_id = await prepared(services, vendor, request);
  const { target, message, ban_id } = await namedIn(services, request);
  const live_chat_id =
    platform === 'youtube' && (action === 'BAN' || action === 'TIMEOUT')
      ? await liveChatFor(services.db, account_id, request.live_chat_id)
      : null;
  try {
    const speaker = await speakerFor(services, request);
    if (platform === 'youtube' && !(await services.spendYoutube(speaker.client_id, COSTS.write)))
      return failed('The quota of YouTube for moderation is used up for now');
    const at = { channel_id, live_chat_id, username: target?.username ?? null, ban_id };
    const made_ban_id = await speaker.speak(callOf(vendor, request, at));
    const draft = draftOf(request, { channel_id, speaker, target, message, ban_id: made_ban_id });
    await published(services, context, request, draft);
    const { user_id: _user, live_chat_id: _chat, ...noted } = request;
    await act(chatAct, stream, { type: 'chat:moderate', ...noted });
    return { success: true };
  } catch (error) {
    if (isOfProtected(error, request, channel_id, target)) throw new DomainError('PROTECTED_USER');
    return failureOf(error);
  }
}

/** Checks what the platform can do; returns the account's channel. */
async function prepared(
  { db }: ModerationServices,
  vendor: ChatVendor,
  { account_id, platform, action, duration_secs }: ModerationRequest,
): Promise<string> {
  const can = { BAN: vendor.ban, TIMEOUT: vendor.timeout, DELETE: vendor.remove, UNBAN: vendor.unban }[action];
  if (!can) throw new DomainError('UNSUPPORTED', { action, platform });
  const most = LONGEST_TIMEOUT[platform];
  if (action === 'TIMEOUT' && most !== undefined && duration_secs! > most)
    throw new DomainError('TIMEOUT_TOO_LONG', { platform, most });
  const channel = await ownChannel(db, account_id, platform);
  if (channel === null) throw new DomainError('CHANNEL_NOT_CONNECTED');
  return channel.channel_id;
}

/** The person, message and ban of the act, as far as the account's history knows them. */
async function namedIn({ db }: ModerationServices, request: ModerationRequest) {
  const { account_id, platform, action, platform_user_id, message_id } = request;
  if (action === 'DELETE') {
    const message = await messageOf(db, { account_id, platform, message_id: message_id! });
    if (message === null) throw new DomainError('MESSAGE_NOT_FOUND');
    return { message, target: message.author, ban_id: null };
  }
  const person = { account_id, platform, platform_user_id: platform_user_id! };
  const target = await personOf(db, person);
  if (platform === 'trovo' && !COMMAND_NAME.test(target?.username ?? '')) throw new DomainError('PERSON_NOT_FOUND');
  const ban_id = platform === 'youtube' && action === 'UNBAN' ? await banOf(db, person) : null;
  if (platform === 'youtube' && action === 'UNBAN' && ban_id === null) throw new DomainError('BAN_NOT_FOUND');
  return { message: null, target, ban_id };
}

/** Whether YouTube refuses a ban because its target is protected. */
function isOfProtected(
  error: unknown,
  { platform, platform_user_id }: ModerationRequest,
  channel_id: string,
  target: KnownPerson | null,
): boolean {
  if (platform !== 'youtube' || !(error instanceof ChatRefused) || error.status !== 403) return false;
  if (error.reason === 'liveChatBanInsertionNotAllowed') return true;
  const roles = target?.roles ?? [];
  const is_protected = roles.includes('broadcaster') || roles.includes('moderator');
  return error.reason === 'insufficientPermissions' && (platform_user_id === channel_id || is_protected);
}

function callOf(
  vendor: ChatVendor,
  { action, platform_user_id, message_id, duration_secs, reason }: ModerationRequest,
  at: { channel_id: string; live_chat_id: string | null; username: string | null; ban_id: string | null },
): (by: ChatLogin) => Promise<string | null> {
  const who = { ...at, user_id: platform_user_id ?? '', reason };
  return {
    BAN: (by: ChatLogin) => vendor.ban!(by, who),
    TIMEOUT: (by: ChatLogin) => vendor.timeout!(by, who, duration_secs!),
    DELETE: (by: ChatLogin) =>
      vendor.remove!(by, { channel_id: at.channel_id, message_id: message_id! }).then(() => null),
    UNBAN: (by: ChatLogin) => vendor.unban!(by, who).then(() => null),
  }[action];
}

interface PerformedAct {
  channel_id: string;
  speaker: Speaker;
  target: KnownPerson | null;
  message: KnownMessage | null;
  ban_id: string | null;
}

function draftOf(
  request: ModerationRequest,
  { channel_id, speaker, target, message, ban_id }: PerformedAct,
): ChatModerationDraft {
  const { platform, action, platform_user_id, message_id, duration_secs, reason } = request;
  const { username = null, display_name = null, avatar_url = null } = target ?? {};
  const id = platform_user_id ?? target?.platform_user_id ?? null;
  const ends_at = duration_secs === null ? null : new Date(Date.now() + duration_secs * 1000).toISOString();
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
  { act_id, account_id, platform }: ModerationRequest,
  draft: ChatModerationDraft,
): Promise<void> {
  const record = actRecord({ act_id, account_id, platform }, draft);
  const ends = await records.append(TOPICS.chat_events, [{ ...record, trace: context.trace }]);
  await awaitShown(context, { topic: TOPICS.chat_events, ends: [...ends], projections: ['chat-live'] });
}

/** The record of an act of ours. */
export function actRecord(
  { act_id, account_id, platform }: Pick<ModerationRequest, 'act_id' | 'account_id' | 'platform'>,
  draft: ChatModerationDraft,
) {
  const now = new Date().toISOString();
  const [about = null, ...others] = personsOf(draft).map((id) => `${platform}:${id}`);
  return {
    ...{ id: act_id, account_id, type: chatRecordType(draft), platform, external_id: `lumio:${act_id}` },
    ...{ occurred_at: now, received_at: now, subject: about },
    ...(others.length > 0 && { subjects: others }),
    ...{ raw: chatRecordText(draft, JSON.stringify({ act_id })), trace: null },
  };
}

/** The answer for a failure of the call; failures of ours are thrown. */
export function failureOf(error: unknown): ModerationResult & { success: false } {
  if (error instanceof LoginRefused) return failed('Log in at the platform again to moderate there');
  if (error instanceof ChatRefused)
    return error.status === 429 ? { ...failed(error.message), passing: true } : failed(error.message);
  if (error instanceof OutcomeUnknown) return failed('The platform did not answer; it is not known what it did', true);
  if (error instanceof NotSent || error instanceof TokenUnavailable)
    return { ...failed('The platform could not be reached; nothing was done'), passing: true };
  throw error;
}
