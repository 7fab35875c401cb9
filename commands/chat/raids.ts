import { z } from 'zod';
import { command, del, feature, permission, post } from '../../app/operation';
import { answered, ChannelActResult, TOOL_ERRORS, toolPlatform } from './channel-tools';

const guard = [feature('feature:multichat'), permission('chat:raid')] as const;

/** Sends the viewers of the account's channel to another one. */
export const startRaid = command({
  name: 'startRaid',
  summary: "Starts a raid from the account's channel",
  rest: post('/v1/chat/raid'),
  guard,
  input: z.object({
    platform: toolPlatform,
    target_channel_id: z.string().min(1).max(100).describe("The platform's id of the channel to raid"),
  }),
  output: ChannelActResult,
  errors: TOOL_ERRORS,
  run: ({ input: { platform, target_channel_id }, caller: { account_id }, context }, services) =>
    answered(services, context, { account_id, platform }, async (tools, by) => {
      await tools.raid(by, target_channel_id);
      return null;
    }),
});

/** Calls off a raid that is being prepared. */
export const cancelRaid = command({
  name: 'cancelRaid',
  summary: "Cancels the pending raid of the account's channel",
  rest: del('/v1/chat/raid', { status: 200, envelope: 'item' }),
  guard,
  input: z.object({ platform: toolPlatform }),
  output: ChannelActResult,
  errors: TOOL_ERRORS,
  run: ({ input: { platform }, caller: { account_id }, context }, services) =>
    answered(services, context, { account_id, platform }, async (tools, by) => {
      await tools.cancelRaid(by);
      return null;
    }),
});
