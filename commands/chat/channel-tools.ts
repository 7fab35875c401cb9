import { z } from 'zod';
import type { RequestContext } from '../../access/authentication/caller';
import { badRequest, notFound } from '../../app/operation';
import type { Services } from '../../app/services';
import { PLATFORMS, type Platform } from '../../domain/common/vendors';
import { type ToolCall, useTool } from '../../services/chat/channel-tools';

/** Result of an act on a channel, with the platform's id of what was made or changed. */
export const ChannelActResult = z
  .object({
    success: z.boolean(),
    details: z.string().nullable().describe('Why the platform did not do it; null on success'),
    id: z.string().nullable().describe("The platform's id of the poll or prediction"),
  })
  .meta({ id: 'ChannelActResult' });
export type ChannelActResult = z.output<typeof ChannelActResult>;

export const toolPlatform = z.enum(PLATFORMS).describe('Twitch alone has this');
/** The platform's id of a poll or prediction. */
export const toolId = z.string().min(1).max(100);

/** A text that the platform limits by its characters. */
export const shortText = (most: number) => z.string().trim().min(1).max(most);

export const TOOL_ERRORS = {
  UNSUPPORTED_TOOL: badRequest('{platform} does not support this'),
  CHANNEL_NOT_CONNECTED: notFound('The account has no channel of this platform connected'),
};

/** Uses a tool of the channel, and answers its result. */
export async function answered(
  services: Services,
  context: RequestContext,
  at: { account_id: string; platform: Platform; missing?: string },
  call: ToolCall,
): Promise<ChannelActResult> {
  const result = await useTool(services, at, call);
  if (result.success) return { success: true, details: null, id: result.id };
  if (result.outcome_unknown) context.unfinished = true;
  return { success: false, details: result.details, id: null };
}
