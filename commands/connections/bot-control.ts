import { z } from 'zod';
import { BotControl, botControlsOf } from '../../views/connections/bot-states';
import { adminPermission, command, notFound, patch } from '../../app/operation';
import { connections, connectionsStream } from '../../domain/connections/connections';
import { PLATFORMS } from '../../domain/common/vendors';

/** Source: spec doc1 §5.11, extra-facts §27. */
export const adminUpdateBotControl = command({
  name: 'adminUpdateBotControl',
  summary: "Lets the bot act in an account's channel of a platform, or pauses it there",
  rest: patch('/v1/admin/bot-control/{account_id}/{platform}'),
  guard: [adminPermission('bot-control:edit')],
  input: z.object({ account_id: z.uuid(), platform: z.enum(PLATFORMS), enabled: z.boolean() }),
  output: BotControl,
  errors: { CONNECTION_NOT_FOUND: notFound('The account has no channel of this platform connected') },
  async run({ input: { account_id, platform, enabled }, act, refuse }, { db }) {
    const toggle = { type: 'connection:toggle_bot', account_id, platform, enabled } as const;
    await act(connections, connectionsStream(account_id), toggle);
    const { items } = await botControlsOf(db, { limit: 1, offset: 0 }, { account_id, platform });
    if (items[0] === undefined) throw refuse('CONNECTION_NOT_FOUND');
    return items[0];
  },
});
