import { BroadcastFigures, ChannelTransition } from '../../domain/history/channel-status';
import type { Vendor } from '../../domain/common/vendors';
import { permission } from '../../kernel/channel';
import { channel } from '../runtime/channel/family';

const MUSIC = 'spotify' satisfies Vendor;

/** An addition to the channels of spec doc3 §4.1; who may read the status may hear it (extra-facts §17). */
export const channelStatus = channel({
  pattern: 'channel-status:<account_id>',
  summary: "Which of an account's channels are live, and what they show.",
  carries: {
    'channel:online': { summary: 'A channel went live.', data: ChannelTransition },
    'channel:offline': { summary: 'A channel is no longer live.', data: ChannelTransition },
    'channel:figures': { summary: "A broadcast's figures of this minute.", data: BroadcastFigures },
  },
  gate: permission(`${MUSIC}:read`),
  flag: null,
});
