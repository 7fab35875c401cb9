import { z } from 'zod';
import { command, feature, notFound, permission, post } from '../../app/operation';
import { answered, ChannelActResult, shortText, TOOL_ERRORS, toolId, toolPlatform } from './channel-tools';

const guard = [feature('feature:multichat'), permission('chat:poll')] as const;
const errors = { ...TOOL_ERRORS, POLL_NOT_FOUND: notFound('Poll not found') };

export const createPoll = command({
  name: 'createPoll',
  summary: "Starts a poll in the account's channel",
  rest: post('/v1/chat/polls'),
  guard,
  input: z.object({
    platform: toolPlatform,
    title: shortText(60),
    choices: z.array(shortText(25)).min(2).max(5),
    duration_secs: z.int().min(15).max(1_800),
  }),
  output: ChannelActResult,
  errors: TOOL_ERRORS,
  run: ({ input: { platform, ...poll }, caller: { account_id }, context }, services) =>
    answered(services, context, { account_id, platform }, (tools, by) => tools.poll(by, poll)),
});

const ending = (name: string, word: 'end' | 'cancel', status: 'TERMINATED' | 'ARCHIVED', summary: string) =>
  command({
    name,
    summary,
    rest: post(`/v1/chat/polls/{id}/${word}`),
    guard,
    input: z.object({ id: toolId }),
    output: ChannelActResult,
    errors,
    run: ({ input: { id }, caller: { account_id }, context }, services) =>
      answered(services, context, { account_id, platform: 'twitch', missing: 'POLL_NOT_FOUND' }, async (tools, by) => {
        await tools.end(by, id, { tool: 'poll', status });
        return id;
      }),
  });

export const endPoll = ending('endPoll', 'end', 'TERMINATED', 'Ends a poll and shows its result');
export const cancelPoll = ending('cancelPoll', 'cancel', 'ARCHIVED', 'Ends a poll and hides its result');
