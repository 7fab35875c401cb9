import { z } from 'zod';
import { command, feature, notFound, permission, post } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { moderateChat } from '../../services/chat/moderate-chat';
import { ChannelActResult } from './channel-tools';
import { MODERATION_ERRORS } from './chat-moderation';

/** Takes a ban or timeout back; messages that it deleted stay deleted. */
export const unbanChatUser = command({
  name: 'unbanChatUser',
  summary: "Takes back the ban or timeout of a person in the account's chat",
  rest: post('/v1/chat/unban'),
  guard: [feature('feature:multichat'), permission('chat:ban')],
  input: z.object({
    platform: z.enum(PLATFORMS).describe('Twitch and Trovo; at YouTube bans that were made here'),
    user_id: z.string().min(1).max(100).describe("The platform's id"),
  }),
  output: ChannelActResult,
  errors: { ...MODERATION_ERRORS, BAN_NOT_FOUND: notFound('No ban of this person was made here') },
  async run({ input: { platform, user_id }, caller, context, act, newId }, services) {
    const { account_id, user_id: acting } = caller;
    const person = { platform, platform_user_id: user_id, message_id: null, duration_secs: null, reason: null };
    const request = { account_id, user_id: acting, act_id: newId('chat-act'), action: 'UNBAN' as const, ...person };
    const result = await moderateChat(services, { act, context }, { ...request, live_chat_id: null });
    if (result.success) return { success: true, details: null, id: null };
    if (result.outcome_unknown) context.unfinished = true;
    return { success: false, details: result.details, id: null };
  },
});
