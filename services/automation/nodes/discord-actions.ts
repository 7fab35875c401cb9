import { NotSent } from '../../../kernel/job';
import { DiscordLimited } from '../../../vendors/discord/port';
import { done, type Executor, failed } from './executor';

/** Posts one message for a step into a channel of the account's own server. */
export const postToChannel: Executor = {
  calls: true,
  input: ({ config, expand }) => ({ channel_id: config.channel_id, message: expand(config.message as string) }),
  async run({ account_id, step_id }, input, { chats }) {
    const { channel_id, message } = input as { channel_id: string; message: string };
    if (message.trim() === '') return failed('empty_message');
    const result = await chats.postDiscord({ account_id, cause_id: step_id, channel_id, text: message });
    if (result.sent) return done;
    if (result.passing)
      throw result.retry_after_ms === undefined ? new NotSent(result.error) : new DiscordLimited(result.retry_after_ms);
    return result.unknown ? { status: 'unknown', error: 'no_answer' } : failed('refused');
  },
};
