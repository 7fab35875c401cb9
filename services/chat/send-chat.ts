import type { Platform } from '../../domain/common/vendors';
import { DomainError } from '../../kernel/errors';
import { OutcomeUnknown, NotSent } from '../../kernel/job';
import type { Services } from '../../app/services';
import { type AnnouncementColor, ChatRefused, type ChatVendor, type OutgoingMessage } from '../../vendors/chat/port';
import { readGrant } from '../connections/connection-grants';
import { type OwnChannel, ownChannel } from '../connections/own-channel';
import { TokenUnavailable } from '../connections/connection-tokens';
import { channelOf } from './identities';
import { personOf } from './known-people';
import { liveChatFor } from './live-chats';
import { identityHasher } from '../identity/identities';
import { dropSend, type EarlierSend, earlierSend, echoMark, echoOf, endSend, keepSend } from './sends';
import { type Send, textHash } from './sends';
import { LoginRefused, type Speaker, speakerFor } from './speakers';
import { COSTS } from '../../vendors/youtube/port';

/** Source: spec doc1 §7.1 rule 6. */
export const SEND_ERRORS = ['login_reconnect_required', 'internal_error', 'send_failed'] as const;
export type SendError = (typeof SEND_ERRORS)[number];

export interface SendRequest {
  account_id: string;
  /** The member that speaks by their login; null: the bot speaks. */
  user_id: string | null;
  /** Id of the cause: one cause sends one message. */
  cause_id: string;
  platform: Platform;
  text: string;
  reply_to: string | null;
  live_chat_id: string | null;
  /** Keeps the message in the own channel of a shared chat of Twitch. */
  for_source_only: boolean;
  /** The caller tries again what was certainly not sent and may be sent later: the cause is then kept no longer. */
  tries_again?: boolean;
}

export type SendResult =
  | { sent: true; message_id: string | null }
  /** `passing`: a limit, or a platform that was not reached; a later try may succeed. */
  | { sent: false; error_code: SendError; error: string; passing?: true };

export type SendServices = Pick<
  Services,
  'db' | 'events' | 'secrets' | 'texts' | 'settings' | 'connection_tokens' | 'logins' | 'chat' | 'spendYoutube'
>;

const failed = (error_code: SendError, error: string): SendResult => ({ sent: false, error_code, error });
const RECONNECT = failed('login_reconnect_required', 'Log in at the platform again to send messages there');
const UNKNOWN = failed('internal_error', 'The platform did not answer; it is not known whether the message was sent');
const UNREACHED: SendResult = {
  ...{ sent: false, error_code: 'send_failed', passing: true },
  error: 'The platform could not be reached; nothing was sent',
};
const NOT_ECHOED = failed('send_failed', 'The message did not appear in the chat');

/**
 * Sends one message for a cause. The cause is kept before the call; a repetition sends nothing: it answers the stored
 * outcome, or looks for the platform's echo. History takes the echo alone.
 * @throws DomainError TEXT_TOO_LONG, CHANNEL_NOT_CONNECTED, NOT_SOURCE_ONLY, and those of {@link liveChatFor}
 */
export function sendChat(services: SendServices, request: SendRequest): Promise<SendResult> {
  return sendOnce(services, request, (vendor, channel, speaker) =>
    senderOf(services, vendor, channel, speaker, request),
  );
}

export interface AnnouncementRequest extends Omit<SendRequest, 'reply_to' | 'live_chat_id' | 'for_source_only'> {
  color: AnnouncementColor | null;
}

/**
 * Sends an announcement for a cause, as {@link sendChat} sends a message.
 * @throws DomainError UNSUPPORTED, TEXT_TOO_LONG, CHANNEL_NOT_CONNECTED
 */
export async function announce(services: SendServices, request: AnnouncementRequest): Promise<SendResult> {
  const { platform, color } = request;
  const { announce: call } = services.chat.get(platform)!;
  if (!call) throw new DomainError('UNSUPPORTED', { action: 'ANNOUNCE', platform });
  const message = { ...request, reply_to: null, live_chat_id: null };
  return sendOnce(services, message, async (_vendor, { channel_id }, speaker) => async ({ text }) => {
    await speaker.speak((by) => call(by, { channel_id, text, color }));
    // The platform names no id.
    return null;
  });
}

type Call = (message: OutgoingMessage) => Promise<string | null>;

async function sendOnce(
  services: SendServices,
  request: Omit<SendRequest, 'for_source_only'>,
  callOf: (vendor: ChatVendor, channel: OwnChannel, speaker: Speaker) => Promise<Call>,
): Promise<SendResult> {
  const { account_id, platform, cause_id: id } = request;
  const { db } = services;
  // First, so that what has changed since does not change the answer.
  const earlier = await earlierSend(db, account_id, id);
  if (earlier !== null) return repeated(services, request, earlier);
  const vendor = services.chat.get(platform)!;
  if ([...request.text].length > vendor.max_characters)
    throw new DomainError('TEXT_TOO_LONG', { platform, most: vendor.max_characters });
  const channel = await ownChannel(db, account_id, platform);
  if (channel === null) throw new DomainError('CHANNEL_NOT_CONNECTED');
  const { channel_id } = channel;
  const live_chat_id = platform === 'youtube' ? await liveChatFor(db, account_id, request.live_chat_id) : null;
  const message = { channel_id, text: request.text, reply_to: request.reply_to, live_chat_id };

  const speaker = await speakerFor(services, request).catch(loginRefused);
  if (speaker === null) return RECONNECT;
  const call = await callOf(vendor, channel, speaker);
  const hash = await identityHasher(services);
  const speaker_hash =
    speaker.user_id === null ? await googleSpeaker(services, speaker, request) : hash(platform, speaker.user_id);
  const text_hash = textHash(hash, id, request.text);
  const echo_mark = echoMark(request.text);
  const intent = { account_id, id, platform, channel_id, speaker_id: speaker.id, speaker_hash, text_hash, echo_mark };
  const kept = await keepSend(db, intent, await paceOf(services, vendor, speaker, intent));
  if (kept === 'too_fast') {
    const error = 'You are sending messages too quickly';
    return { sent: false, error_code: 'send_failed', error, passing: true };
  }
  if (kept !== 'kept') return repeated(services, request, kept);
  if (platform === 'youtube' && !(await spendsOf(services, speaker, { account_id, id }))) {
    await endSend(db, { account_id, id }, 'refused');
    return failed('send_failed', 'The quota of YouTube for messages is used up for now');
  }
  return outcome(services, request, () => call(message));
}

/** Runs the call and stores its outcome. */
async function outcome(
  { db }: SendServices,
  { account_id, cause_id: id, tries_again = false }: Pick<SendRequest, 'account_id' | 'cause_id' | 'tries_again'>,
  call: () => Promise<string | null>,
): Promise<SendResult> {
  const end = (status: 'sent' | 'refused' | 'unknown', message_id?: string | null) =>
    endSend(db, { account_id, id }, status, message_id);
  try {
    const message_id = await call();
    await end('sent', message_id);
    return { sent: true, message_id };
  } catch (error) {
    const result = failureOf(error);
    if (result === null) throw error;
    if (tries_again && !result.sent && result.passing) await dropSend(db, { account_id, id });
    else await end(result === UNKNOWN ? 'unknown' : 'refused');
    return result;
  }
}

/** The answer for a failure of the call; null for one of ours. */
function failureOf(error: unknown): SendResult | null {
  if (error instanceof LoginRefused) return RECONNECT;
  if (error instanceof ChatRefused) {
    const refused = { sent: false, error_code: 'send_failed', error: error.message } as const;
    return error.status === 429 ? { ...refused, passing: true } : refused;
  }
  if (error instanceof OutcomeUnknown) return UNKNOWN;
  if (error instanceof NotSent || error instanceof TokenUnavailable) return UNREACHED;
  return null;
}

/** Answers the repetition of a send without sending. */
async function repeated(
  services: SendServices,
  { account_id, cause_id: id }: Pick<SendRequest, 'account_id' | 'cause_id'>,
  earlier: EarlierSend,
): Promise<SendResult> {
  if (earlier.status === 'sent') return { sent: true, message_id: earlier.message_id };
  if (earlier.status === 'refused') return failed('send_failed', 'The message was not sent');
  const { db } = services;
  const echo = await echoOf(db, await identityHasher(services), { account_id, id }, earlier);
  if (echo !== null) {
    await endSend(db, { account_id, id }, 'sent', echo);
    return { sent: true, message_id: echo };
  }
  if (!earlier.is_old) return UNKNOWN;
  await endSend(db, { account_id, id }, 'refused');
  return NOT_ECHOED;
}

const loginRefused = (error: unknown): null => {
  if (error instanceof LoginRefused) return null;
  throw error;
};

/**
 * The call of the platform. A message for the own channel of a shared chat needs the app's token, and the consents of
 * its speaker and its channel.
 * @throws DomainError NOT_SOURCE_ONLY with the reason
 */
async function senderOf(
  services: SendServices,
  vendor: ChatVendor,
  channel: OwnChannel,
  speaker: Speaker,
  { for_source_only }: SendRequest,
): Promise<Call> {
  if (!for_source_only) return (message) => speaker.speak((by) => vendor.send(by, message));
  const { sendByApp } = vendor;
  const no = (reason: string) => new DomainError('NOT_SOURCE_ONLY', { reason });
  if (vendor.platform !== 'twitch') throw no('only Twitch has shared chats');
  if (!sendByApp) throw no('the installation has no app secret of Twitch');
  if (!speaker.scopes.includes('user:bot')) throw no('the speaker has not allowed the app to speak (scope user:bot)');
  const grant = await readGrant(services, channel.connection_id);
  if (grant?.app !== 'system' || !grant.scopes.includes('channel:bot'))
    throw no('the channel has not allowed the app to speak in its chat (scope channel:bot)');
  return (message) => sendByApp(speaker.user_id!, message);
}

/** Hash of the channel that a login with Google speaks as; null where YouTube does not name it. */
const googleSpeaker = async (
  services: SendServices,
  { id: login_connection_id, speak }: Speaker,
  { user_id }: Pick<SendRequest, 'user_id'>,
): Promise<string | null> =>
  user_id === null ? null : speak((by) => channelOf(services, { user_id, login_connection_id }, by));

/** The pace of the speaker: more messages for the broadcaster and moderators, by the person's newest message here. */
async function paceOf(
  { db }: SendServices,
  { pace }: ChatVendor,
  { user_id }: Speaker,
  { account_id, platform, channel_id }: Pick<Send, 'account_id' | 'platform' | 'channel_id'>,
) {
  if (pace === null) return null;
  const { seconds, messages, privileged } = pace;
  if (user_id === null) return { seconds, messages };
  if (user_id === channel_id) return { seconds, messages: privileged };
  const person = await personOf(db, { account_id, platform, platform_user_id: user_id });
  return { seconds, messages: person?.roles.includes('moderator') ? privileged : messages };
}

/** As {@link spends}; after a failure the send is kept no longer, since no call was made. */
async function spendsOf(services: SendServices, speaker: Speaker, send: Pick<Send, 'account_id' | 'id'>) {
  try {
    return await spends(services, speaker);
  } catch (error) {
    await dropSend(services.db, send);
    throw error;
  }
}

const spends = ({ spendYoutube }: SendServices, speaker: Speaker): Promise<boolean> =>
  spendYoutube(speaker.client_id, COSTS.write);
