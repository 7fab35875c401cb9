import { v5 } from 'uuid';
import { cutTo } from '../../../domain/automation/expansion';
import { isPlatform, type Platform, PLATFORMS } from '../../../domain/common/vendors';
import { DomainError } from '../../../kernel/errors';
import { NotSent } from '../../../kernel/job';
import { placesWithBot } from '../account-bots';
import { done, type Executor, failed, type Outcome, type StepTools, type StepWork } from './executor';

/** Platforms of a message: those of the config, else the cause's, else all with an active bot. */
async function targetsOf({ account_id, cause }: StepWork, platforms: unknown, { db }: StepTools): Promise<Platform[]> {
  if (Array.isArray(platforms)) return platforms as Platform[];
  if (cause.platform !== null && isPlatform(cause.platform)) return [cause.platform];
  const places = PLATFORMS.map((platform) => ({ account_id, platform }));
  const hasBot = await placesWithBot(db, places);
  return places.filter(hasBot).map(({ platform }) => platform);
}

/** Sends a line once for a step and platform. */
async function say(work: StepWork, platform: Platform, message: string, { chats }: StepTools): Promise<Outcome> {
  const text = cutTo(message, chats.maxCharacters(platform));
  try {
    const result = await chats.send({
      ...{ account_id: work.account_id, user_id: null, cause_id: v5(platform, work.step_id), platform, text },
      ...{ reply_to: null, for_source_only: false, tries_again: true },
      live_chat_id: work.cause.platform === platform ? work.cause.live_chat_id : null,
    });
    if (result.sent) return done;
    if (result.passing) throw new NotSent(result.error);
    return result.error_code === 'internal_error'
      ? { status: 'unknown', error: result.error_code }
      : failed(result.error_code);
  } catch (error) {
    if (!(error instanceof DomainError)) throw error;
    return failed(error.reason.toLowerCase());
  }
}

export const sendChatMessage: Executor = {
  calls: true,
  input: ({ config, expand }) => ({ ...config, message: expand(config.message as string) }),
  async run(work, { message, platforms }, tools) {
    const text = (message as string).trim();
    if (text === '') return failed('empty_message');
    const targets = await targetsOf(work, platforms, tools);
    if (targets.length === 0) return failed('no_bot');
    const hasBot = await placesWithBot(
      tools.db,
      targets.map((platform) => ({ account_id: work.account_id, platform })),
    );
    let worst: Outcome = done;
    for (const platform of targets) {
      const result = hasBot({ account_id: work.account_id, platform })
        ? await say(work, platform, text, tools)
        : failed('no_bot');
      if (result.status === 'unknown' || worst.status === 'succeeded') worst = result;
    }
    return worst;
  },
};
