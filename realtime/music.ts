import { z } from 'zod';
import type { Vendor } from '../domain/vendors';
import { permission } from '../kernel/channel';
import { channel } from './runtime/family';

const MUSIC = 'spotify' satisfies Vendor;

/** What the player does now, as it is sent to an account's channel. */
export const nowPlaying = (account_id: string, data: unknown) => {
  const channel = `${MUSIC}:${account_id}`;
  const type = `${MUSIC}:now-playing`;
  return { channel, message: { type, channel, event_type: type, data } };
};

export const music = channel({
  pattern: `${MUSIC}:<account_id>`,
  summary: 'What an account is listening to.',
  carries: { '*': { summary: 'The state of the player.', data: z.looseObject({}) } },
  gate: permission(`${MUSIC}:read`),
  flag: 'feature:music',
  message_type: `${MUSIC}:now-playing`,
});
