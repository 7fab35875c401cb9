import { DomainError } from '../../kernel/errors';
import { ownChannel } from '../connections/own-channel';
import { identityHasher } from '../identity/identities';
import { failureOf, UNKNOWN } from './moderate-chat';
import type { ModerationResult } from './moderation-notes';
import type { SendRequest, SendServices } from './send-chat';
import { dropSend, earlierSend, endSend, keepSend } from './sends';
import { speakerFor } from './speakers';

export interface ShoutOutRequest extends Pick<SendRequest, 'account_id' | 'user_id' | 'cause_id' | 'platform'> {
  target_channel_id: string;
}

/**
 * Shows another channel in the account's chat, once for a cause. The cause is kept before the call; a repetition calls
 * nothing and answers the stored outcome. A passing failure is not kept: a later try calls again.
 * @throws DomainError UNSUPPORTED, CHANNEL_NOT_CONNECTED
 */
export async function shoutOut(
  services: SendServices,
  { account_id, user_id, cause_id: id, platform, target_channel_id }: ShoutOutRequest,
): Promise<ModerationResult> {
  const { db } = services;
  const earlier = await earlierSend(db, account_id, id);
  if (earlier !== null) return answerOf(earlier.status);
  const { shoutOut: call } = services.chat.get(platform)!;
  if (!call) throw new DomainError('UNSUPPORTED', { action: 'SHOUT_OUT', platform });
  const channel = await ownChannel(db, account_id, platform);
  if (channel === null) throw new DomainError('CHANNEL_NOT_CONNECTED');
  const { channel_id } = channel;
  try {
    const speaker = await speakerFor(services, { account_id, user_id, platform });
    const hash = await identityHasher(services);
    const speaker_hash = speaker.user_id === null ? null : hash(platform, speaker.user_id);
    const intent = { account_id, id, platform, channel_id, speaker_id: speaker.id, speaker_hash, text_hash: null };
    const kept = await keepSend(db, intent, null);
    if (typeof kept === 'object') return answerOf(kept.status);
    await speaker.speak((by) => call(by, { channel_id, target_channel_id }));
  } catch (error) {
    const failure = failureOf(error);
    if (failure.passing) await dropSend(db, { account_id, id });
    else await endSend(db, { account_id, id }, failure.outcome_unknown ? 'unknown' : 'refused');
    return failure;
  }
  await endSend(db, { account_id, id }, 'sent');
  return { success: true };
}

function answerOf(status: string): ModerationResult {
  if (status === 'sent') return { success: true };
  if (status !== 'refused') return UNKNOWN;
  return { success: false, details: 'The platform did not do it', outcome_unknown: false };
}
