import { z } from 'zod';
import type { LiveMessages } from '../access/services';
import type { Vendor } from '../domain/vendors';
import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

const MUSIC = 'spotify' satisfies Vendor;

/** Tells on an account's channel what the player does now. */
export const tellingNowPlaying =
  (live: LiveMessages) =>
  (account_id: string, data: unknown): Promise<void> => {
    const channel = `${MUSIC}:${account_id}`;
    const type = `${MUSIC}:now-playing`;
    return live.broadcast(channel, { type, channel, event_type: type, data });
  };

export const music = channel({
  pattern: `${MUSIC}:<account_id>`,
  summary: 'What an account is listening to.',
  carries: { '*': { summary: 'The state of the player.', data: z.looseObject({}) } },
  gate: permission(`${MUSIC}:read`),
  flag: 'feature:music',
  message_type: `${MUSIC}:now-playing`,
});
