import { z } from 'zod';
import { ChannelStatus, channelStatusesOf } from '../../views/history/channel-status';
import { get, permission, query, whole } from '../../app/operation';
import type { Vendor } from '../../domain/common/vendors';

const MUSIC = 'spotify' satisfies Vendor;

/** Guarded like the WebSocket channel of its changes. Source: spec doc2 §4.1, extra-facts §17. */
export const channelStatus = query({
  name: 'channelStatus',
  summary: "What is on air on the active account's channels; a channel without a broadcast is one row, too",
  rest: get('/v1/channel-status'),
  pages: whole(),
  guard: [permission(`${MUSIC}:read`)],
  input: z.object({}),
  output: ChannelStatus,
  run: ({ caller: { account_id } }, { db }) => channelStatusesOf(db, account_id),
});
