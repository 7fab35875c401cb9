import { z } from 'zod';
import { badRequest, command, feature, forbidden, invalid, notFound, permissionBy, post } from '../../app/operation';
import { CHAT_ACTIONS } from '../../domain/chat/chat-acts';
import { PLATFORMS } from '../../domain/common/vendors';
import { moderateChat as carryOut } from '../../services/chat/moderate-chat';
import { LIVE_CHAT_ERRORS } from './chat-send';

/** Longest reason in characters: Twitch takes 500. */
const REASON = 500;

/** Source: spec doc2 §2.10. */
const ModerationResult = z
  .object({
    success: z.boolean(),
    details: z.string().nullable().describe('Why the platform did not do it; null on success'),
  })
  .meta({ id: 'GqlModerationResult' });

/** Refusals of every act on a person. */
export const MODERATION_ERRORS = {
  UNSUPPORTED: badRequest('{platform} does not support {action}'),
  CHANNEL_NOT_CONNECTED: notFound('The account has no channel of this platform connected'),
  PERSON_NOT_FOUND: notFound('The chats of the account do not know this person'),
};

const BY_ACTION = { BAN: 'chat:ban', TIMEOUT: 'chat:timeout', DELETE: 'chat:delete' } as const;

/** Acts as the acting user, or as the bot for a credential without one. */
export const moderateChat = command({
  name: 'moderateChat',
  // Source: spec doc2 §4.2 and §4.3 "Moderation per platform", rulings "moderation failures".
  summary: "Bans or times out somebody, or deletes a message, in the chat of the account's channel",
  rest: post('/v1/chat/moderate'),
  graphql: { argument: 'input' },
  guard: [feature('feature:multichat'), permissionBy('action', BY_ACTION)],
  input: z
    .object({
      action: z.enum(CHAT_ACTIONS).meta({ id: 'ModerationAction' }),
      platform: z.enum(PLATFORMS).describe('Kick deletes, Trovo bans; Twitch and YouTube do all three'),
      user_id: z.string().min(1).max(100).nullish().describe("The platform's id; for BAN and TIMEOUT"),
      message_id: z.string().min(1).max(255).nullish().describe("The platform's id; for DELETE"),
      duration_secs: z.int().min(1).max(1_209_600).nullish().describe('For TIMEOUT; at YouTube at most a day'),
      reason: z.string().max(REASON).nullish(),
      live_chat_id: z.string().min(1).max(255).nullish().describe('Of YouTube; default: of the broadcast on air'),
    })
    .meta({ id: 'ModerationInput' }),
  output: ModerationResult,
  errors: {
    ...MODERATION_ERRORS,
    USER_REQUIRED: invalid('user_id is required for {action}'),
    MESSAGE_REQUIRED: invalid('message_id is required for DELETE'),
    DURATION_REQUIRED: invalid('duration_secs is required for TIMEOUT'),
    TIMEOUT_TOO_LONG: invalid('duration_secs: at most {most} on {platform}'),
    MESSAGE_NOT_FOUND: notFound('Message not found'),
    PROTECTED_USER: forbidden('The broadcaster and moderators cannot be moderated'),
    ...LIVE_CHAT_ERRORS,
  },
  async run({ input, caller, context, act, newId, refuse }, services) {
    const { action, platform } = input;
    if (action === 'DELETE' && !input.message_id) throw refuse('MESSAGE_REQUIRED');
    if (action !== 'DELETE' && !input.user_id) throw refuse('USER_REQUIRED', { action });
    if (action === 'TIMEOUT' && !input.duration_secs) throw refuse('DURATION_REQUIRED');
    const result = await carryOut(
      services,
      { act, context },
      {
        account_id: caller.account_id,
        user_id: caller.user_id,
        act_id: newId('chat-act'),
        platform,
        action,
        platform_user_id: action === 'DELETE' ? null : input.user_id!,
        message_id: action === 'DELETE' ? input.message_id! : null,
        duration_secs: action === 'TIMEOUT' ? input.duration_secs! : null,
        reason: input.reason ?? null,
        live_chat_id: input.live_chat_id ?? null,
      },
    );
    if (result.success) return { success: true, details: null };
    if (result.outcome_unknown) context.unfinished = true;
    return { success: false, details: result.details };
  },
});
