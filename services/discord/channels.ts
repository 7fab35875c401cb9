import { ApiError } from '../../kernel/errors';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { Services } from '../../app/services';
import { type DiscordChannel, DiscordLimited, DiscordRefused } from '../../vendors/discord/port';

/** Seconds, where Discord gives no delay. */
const RETRY_AFTER = 10;

/**
 * Text channels of a server; none of one that the bot has left.
 * @throws ApiError with 503 while Discord does not answer
 */
export async function textChannelsOf(
  { discord }: Pick<Services, 'discord'>,
  guild_id: string,
): Promise<DiscordChannel[]> {
  try {
    return await discord.textChannels(guild_id);
  } catch (error) {
    if (error instanceof DiscordRefused && (error.status === 403 || error.status === 404)) return [];
    const isTheirs = [DiscordRefused, NotSent, OutcomeUnknown].some((kind) => error instanceof kind);
    if (!isTheirs) throw error;
    const retry_after_seconds = error instanceof DiscordLimited ? Math.ceil(error.retry_after_ms / 1000) : RETRY_AFTER;
    const problem = { status: 503, retry_after_seconds, cause: error };
    throw new ApiError('INTERNAL_SERVER_ERROR', 'Discord does not answer', problem);
  }
}
