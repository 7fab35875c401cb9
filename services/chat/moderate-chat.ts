import type { Platform } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { type ChatLogin, ChatRefused, type ChatVendor } from '../../vendors/chat/port';
import { COSTS } from '../../vendors/youtube/port';
import { TokenUnavailable } from '../connections/connection-tokens';
import { ownChannel } from '../connections/own-channel';
import type { ChatCause } from './causes';
import { banOf, type KnownPerson } from './known-people';
import { liveChatFor } from './live-chats';
import {
  factsOf,
  isNoted,
  type ModerationRequest,
  type ModerationResult,
  type ModerationServices,
  noteCall,
  noteEarlier,
} from './moderation-notes';
import { dropSend, earlierSend, endSend, keepSend } from './sends';
import { LoginRefused, type Speaker, speakerFor } from './speakers';

/** Longest timeout of a platform in seconds. Source: spec doc2 §4.3, vendors.md §2. */
export const LONGEST_TIMEOUT: Partial<Record<Platform, number>> = { twitch: 1_209_600, youtube: 86_400 };
/** Names that Trovo's commands carry. */
const COMMAND_NAME = /^\w+$/;

const failed = (details: string, outcome_unknown = false): ModerationResult & { success: false } => ({
  success: false,
  details,
  outcome_unknown,
});

export const UNKNOWN = failed('The platform did not answer; it is not known what it did', true);

/**
 * Carries out a moderator's act on a platform, publishes it as a record of the chat, and notes it for the audit log.
 * The call is kept before it is made: a repetition of an answered one only publishes and notes it. A repetition
 * without a stored answer acts again, because the platform ends in the same state, unless the act is one of a job.
 * @throws DomainError UNSUPPORTED, CHANNEL_NOT_CONNECTED, MESSAGE_NOT_FOUND, PERSON_NOT_FOUND, BAN_NOT_FOUND,
 * PROTECTED_USER, TIMEOUT_TOO_LONG, and as {@link liveChatFor}
 */
export async function moderateChat(
  services: ModerationServices,
  cause: ChatCause,
  request: ModerationRequest,
): Promise<ModerationResult> {
  const { account_id, platform, action, act_id: id, once = false } = request;
  const { db } = services;
  if (await isNoted(services, request)) return { success: true };
  const earlier = await earlierSend(db, account_id, id);
  if (earlier?.status === 'sent') return noteEarlier(services, cause, request, earlier);
  if (earlier !== null && once) return UNKNOWN;
  const vendor = services.chat.get(platform)!;
  const channel_id = await prepared(services, vendor, request);
  const { target, message, username, ban_id } = await namedIn(services, request);
  const live_chat_id =
    platform === 'youtube' && (action === 'BAN' || action === 'TIMEOUT')
      ? await liveChatFor(db, account_id, request.live_chat_id)
      : null;
  let speaker: Speaker;
  let made_ban_id: string | null;
  const called_at = new Date();
  try {
    speaker = await speakerFor(services, request);
    if (platform === 'youtube' && !(await services.spendYoutube(speaker.client_id, COSTS.write)))
      return failed('The quota of YouTube for moderation is used up for now');
    // Without hashes the call counts for no pace and has no echo.
    const hashes = { speaker_hash: null, text_hash: null };
    const kept = await keepSend(db, { account_id, id, platform, channel_id, speaker_id: speaker.id, ...hashes }, null);
    if (kept !== 'kept' && once) return UNKNOWN;
    const at = { channel_id, live_chat_id, username, ban_id };
    made_ban_id = await speaker.speak(callOf(vendor, request, at));
  } catch (error) {
    const is_protected = isOfProtected(error, request, channel_id, target);
    const failure = is_protected ? failed('') : failureOf(error);
    if (failure.outcome_unknown) await endSend(db, { account_id, id }, 'unknown');
    else await dropSend(db, { account_id, id });
    if (is_protected) throw new DomainError('PROTECTED_USER');
    return failure;
  }
  await endSend(db, { account_id, id }, 'sent', made_ban_id);
  return noteCall(services, cause, request, { channel_id, speaker, target, message, ban_id: made_ban_id, called_at });
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

/** As {@link factsOf}, with the ban; facts that the call needs must be known. */
async function namedIn(services: ModerationServices, request: ModerationRequest) {
  const { db } = services;
  const { account_id, platform, action, platform_user_id } = request;
  const { target, message } = await factsOf(services, request);
  if (action === 'DELETE') {
    if (message === null) throw new DomainError('MESSAGE_NOT_FOUND');
    return { message, target, username: null, ban_id: null };
  }
  const person = { account_id, platform, platform_user_id: platform_user_id! };
  const username = target?.username ?? request.username ?? null;
  if (platform === 'trovo' && !COMMAND_NAME.test(username ?? '')) throw new DomainError('PERSON_NOT_FOUND');
  const ban_id = platform === 'youtube' && action === 'UNBAN' ? await banOf(db, person) : null;
  if (platform === 'youtube' && action === 'UNBAN' && ban_id === null) throw new DomainError('BAN_NOT_FOUND');
  return { message: null, target, username, ban_id };
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

/** The answer for a failure of the call; failures of ours are thrown. */
export function failureOf(error: unknown): ModerationResult & { success: false } {
  if (error instanceof LoginRefused) return failed('Log in at the platform again to moderate there');
  if (error instanceof ChatRefused)
    return error.status === 429 ? { ...failed(error.message), passing: true } : failed(error.message);
  if (error instanceof OutcomeUnknown) return UNKNOWN;
  if (error instanceof NotSent || error instanceof TokenUnavailable)
    return { ...failed('The platform could not be reached; nothing was done'), passing: true };
  throw error;
}
