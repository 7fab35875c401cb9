import { createHash } from 'node:crypto';

/**
 * Ids of messages: `<epoch>-<seq>`, opaque to clients. On a channel that others are forwarded to, the places in those
 * follow, each behind a dot (docs/decisions/0064). Source: design §8, rulings "resume".
 */

const SEQ = /^(0|[1-9]\d{0,14})$/;

/**
 * The epoch of one channel. It contains the installation's epoch, so it changes with a restore, and the channel's name,
 * so that an id of another channel is recognised as one.
 */
export function channelEpoch(installation_epoch: string, channel: string): string {
  return createHash('sha256').update(`${installation_epoch}\n${channel}`).digest('hex').slice(0, 12);
}

export function messageId(epoch: string, seq: number, places: readonly number[] | null = null): string {
  return `${epoch}-${[seq, ...(places ?? [])].join('.')}`;
}

/** The seq of an id of this epoch; null for ids of other epochs and other channels, and for what is no id at all. */
export function parseMessageId(epoch: string, id: string): number | null {
  if (!id.startsWith(`${epoch}-`)) return null;
  const digits = id.slice(epoch.length + 1);
  return SEQ.test(digits) ? Number(digits) : null;
}

/** The seq of an id and the `count` places behind it, of this epoch; null as of {@link parseMessageId}. */
export function parsePlaces(epoch: string, id: string, count: number): readonly number[] | null {
  if (!id.startsWith(`${epoch}-`)) return null;
  const places = id.slice(epoch.length + 1).split('.', count + 2);
  if (places.length !== count + 1 || !places.every((place) => SEQ.test(place))) return null;
  return places.map(Number);
}
