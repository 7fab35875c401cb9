import { createHash } from 'node:crypto';

/** Ids of stored messages: `<epoch>-<seq>`, opaque to clients. Source: design §8, rulings "resume". */

/**
 * The epoch of one channel. It contains the installation's epoch, so it changes with a restore, and the channel's name,
 * so that an id of another channel is recognised as one.
 */
export function channelEpoch(installation_epoch: string, channel: string): string {
  return createHash('sha256').update(`${installation_epoch}\n${channel}`).digest('hex').slice(0, 12);
}

export function messageId(epoch: string, seq: number): string {
  return `${epoch}-${seq}`;
}

/** The seq of an id of this epoch; null for ids of other epochs and other channels, and for what is no id at all. */
export function parseMessageId(epoch: string, id: string): number | null {
  if (!id.startsWith(`${epoch}-`)) return null;
  const digits = id.slice(epoch.length + 1);
  return /^(0|[1-9]\d{0,14})$/.test(digits) ? Number(digits) : null;
}
