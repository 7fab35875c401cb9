import { z } from 'zod';
import { command, feature, permission, post } from '../../app/operation';
import { chatAct, chatActStream } from '../../domain/chat/chat-acts';
import { USER_TREATMENTS } from '../../domain/chat/chat-messages';
import { answered, ChannelActResult, TOOL_ERRORS, toolPlatform } from './channel-tools';

/** Marks a person as suspicious, or takes the mark away; Twitch reports the change to the chat itself. */
export const setChatUserTreatment = command({
  name: 'setChatUserTreatment',
  summary: "Watches or restricts a person in the account's chat, or ends this",
  rest: post('/v1/chat/user-treatment'),
  guard: [feature('feature:multichat'), permission('chat:timeout')],
  input: z.object({
    platform: toolPlatform,
    user_id: z.string().min(1).max(100).describe("The platform's id"),
    user_treatment: z.enum(USER_TREATMENTS),
  }),
  output: ChannelActResult,
  errors: TOOL_ERRORS,
  async run({ input: { platform, user_id, user_treatment }, caller: { account_id }, context, act, newId }, services) {
    const result = await answered(services, context, { account_id, platform }, async (tools, by) => {
      await tools.treat(by, user_id, user_treatment);
      return null;
    });
    if (!result.success) return result;
    const act_id = newId('chat-act');
    const about = { platform_user_id: user_id, message_id: null, duration_secs: null, reason: user_treatment };
    const noted = { act_id, account_id, platform, action: 'TREATMENT' as const, ...about };
    await act(chatAct, chatActStream(act_id), { type: 'chat:moderate', ...noted });
    return result;
  },
});
