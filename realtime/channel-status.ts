import { z } from 'zod';
import type { Vendor } from '../domain/vendors';
import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

const MUSIC = 'spotify' satisfies Vendor;

/** An addition to the channels of spec doc3 §4.1; who may read the status may hear it (extra-facts §17). */
export const channelStatus = channel({
  pattern: 'channel-status:<account_id>',
  summary: "Which of an account's channels are live, and what they show.",
  carries: { '*': { summary: 'The status of one channel.', data: z.looseObject({}) } },
  gate: permission(`${MUSIC}:read`),
  flag: null,
});
