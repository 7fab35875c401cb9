import { z } from 'zod';
import { BotControl, botControlsOf, BotState } from '../../views/connections/bot-states';
import { adminPermission, get, numbered, query } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';

/** Source: spec doc1 §5.11, extra-facts §27. */
export const adminBotControl = query({
  name: 'adminBotControl',
  summary: 'Whether the bot acts in the channels of all accounts, the newest account first',
  rest: get('/v1/admin/bot-control'),
  pages: numbered('PaginatedAdminBotControlResult'),
  guard: [adminPermission('bot-control:read')],
  input: z.object({
    platform: z.enum(PLATFORMS).nullish(),
    status: BotState.shape.status.nullish(),
    search: z
      .string()
      .trim()
      .max(200)
      .nullish()
      .describe("Part of an account's name, or its owner's, in whatever case"),
  }),
  output: BotControl,
  run: ({ input, page }, { db }) => botControlsOf(db, page, input),
});
