import { z } from 'zod';
import { badRequest, command, feature, invalid, notFound, permission, post } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { SEND_ERRORS, sendChat } from '../../services/chat/send-chat';

/** Longer than any platform takes; each has its own limit. */
const MAX_CHARACTERS = 2_000;

/** Source: spec doc2 §2.10. */
const SendResult = z
  .object({
    sent: z.boolean(),
    message_id: z.string().nullable().describe("The platform's id of the message, where it names one"),
    error: z.string().nullable(),
    error_code: z.enum(SEND_ERRORS).nullable().describe('Null on success'),
    platform: z.string(),
  })
  .meta({ id: 'GqlSendResult' });

/** Refusals of a live chat of YouTube. */
export const LIVE_CHAT_ERRORS = {
  LIVE_CHAT_UNKNOWN: notFound("live_chat_id is no active live chat of the account's broadcasts"),
  NO_ACTIVE_STREAM: badRequest('The account has no broadcast on air at YouTube'),
  SEVERAL_ACTIVE_STREAMS: badRequest('Several broadcasts are on air at YouTube: name one by live_chat_id'),
};

/** Sends as the acting user, or as the bot for a credential without one. */
export const sendChatToPlatform = command({
  name: 'sendChatToPlatform',
  // Source: spec doc2 §2.10 and §4.2, rulings "chat send".
  summary: "Sends a message to the chat of the account's channel on a platform",
  rest: post('/v1/chat/send'),
  guard: [feature('feature:multichat'), permission('chat:write')],
  input: z
    .object({
      platform: z.enum(PLATFORMS),
      message: z.string().trim().min(1).max(MAX_CHARACTERS).describe('At most 500 characters, 200 at YouTube'),
      reply_to_message_id: z.string().min(1).max(255).nullish().describe("The platform's id of a message"),
      live_chat_id: z
        .string()
        .min(1)
        .max(255)
        .nullish()
        .describe('Of YouTube; default: the chat of the only broadcast on air'),
      for_source_only: z
        .boolean()
        .nullish()
        .describe('Keeps the message in the own channel of a shared chat of Twitch; default false'),
    })
    .meta({ id: 'SendChatInput' }),
  output: SendResult,
  errors: {
    TEXT_TOO_LONG: invalid('message: at most {most} characters on {platform}'),
    CHANNEL_NOT_CONNECTED: notFound('The account has no channel of this platform connected'),
    NOT_SOURCE_ONLY: badRequest('The message cannot be kept in the own channel: {reason}'),
    ...LIVE_CHAT_ERRORS,
  },
  async run({ input, caller, context, newId }, services) {
    const { platform } = input;
    const result = await sendChat(services, {
      account_id: caller.account_id,
      user_id: caller.user_id,
      cause_id: newId('chat-send'),
      platform,
      text: input.message,
      reply_to: input.reply_to_message_id ?? null,
      live_chat_id: input.live_chat_id ?? null,
      for_source_only: input.for_source_only ?? false,
    });
    if (result.sent) return { sent: true, message_id: result.message_id, error: null, error_code: null, platform };
    const { error, error_code } = result;
    // A repetition looks for the platform's echo.
    if (error_code === 'internal_error') context.unfinished = true;
    return { sent: false, message_id: null, error, error_code, platform };
  },
});
