import { z } from 'zod';
import { command, feature, notFound, permission, post } from '../../app/operation';
import type { ToolEnd } from '../../vendors/chat/port';
import type { ToolCall } from '../../services/chat/channel-tools';
import { answered, ChannelActResult, shortText, TOOL_ERRORS, toolId, toolPlatform } from './channel-tools';

const guard = [feature('feature:multichat'), permission('chat:prediction')] as const;
const errors = { ...TOOL_ERRORS, PREDICTION_NOT_FOUND: notFound('Prediction not found') };
const at = (account_id: string) => ({ account_id, platform: 'twitch', missing: 'PREDICTION_NOT_FOUND' }) as const;

const ended =
  (id: string, end: ToolEnd): ToolCall =>
  async (tools, by) => {
    await tools.end(by, id, end);
    return id;
  };

export const createPrediction = command({
  name: 'createPrediction',
  summary: "Starts a prediction in the account's channel",
  rest: post('/v1/chat/predictions'),
  guard,
  input: z.object({
    platform: toolPlatform,
    title: shortText(45),
    outcomes: z.array(shortText(25)).min(2).max(10),
    window_secs: z.int().min(30).max(1_800).describe('Seconds in which viewers may take part'),
  }),
  output: ChannelActResult,
  errors: TOOL_ERRORS,
  run: ({ input: { platform, ...prediction }, caller: { account_id }, context }, services) =>
    answered(services, context, { account_id, platform }, (tools, by) => tools.prediction(by, prediction)),
});

export const resolvePrediction = command({
  name: 'resolvePrediction',
  summary: 'Ends a prediction with an outcome',
  rest: post('/v1/chat/predictions/{id}/resolve'),
  guard,
  input: z.object({ id: toolId, winning_outcome_id: toolId }),
  output: ChannelActResult,
  errors,
  run: ({ input: { id, winning_outcome_id }, caller: { account_id }, context }, services) =>
    answered(
      services,
      context,
      at(account_id),
      ended(id, { tool: 'prediction', status: 'RESOLVED', winning_outcome_id }),
    ),
});

const ending = (name: string, word: 'lock' | 'cancel', status: 'LOCKED' | 'CANCELED', summary: string) =>
  command({
    name,
    summary,
    rest: post(`/v1/chat/predictions/{id}/${word}`),
    guard,
    input: z.object({ id: toolId }),
    output: ChannelActResult,
    errors,
    run: ({ input: { id }, caller: { account_id }, context }, services) =>
      answered(services, context, at(account_id), ended(id, { tool: 'prediction', status })),
  });

export const lockPrediction = ending('lockPrediction', 'lock', 'LOCKED', 'Takes no further part in a prediction');
export const cancelPrediction = ending('cancelPrediction', 'cancel', 'CANCELED', 'Ends a prediction and refunds it');
