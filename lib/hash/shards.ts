import { murmur2, partOf } from './murmur2';

/** Logical shards of the outbox and of the relay. Never changed: rows and nodes of other builds are placed by it. */
export const SHARDS = 64;

const ACCOUNT_AT_END = /:([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})$/;

/** Shard key of a channel: the id that its name ends with where that is a UUID, else the name. */
export const keyOfChannel = (channel: string): string => ACCOUNT_AT_END.exec(channel)?.[1] ?? channel;

/**
 * The shard of a channel: that of the account whose it is, which the name tells where it ends with the account's id.
 * By the hash that places an account's records in partitions of the broker, so that projectors of different partitions
 * write to different shards while their number divides {@link SHARDS}.
 */
export const shardOf = (channel: string, account_id: string | null = null): number =>
  partOf(account_id ?? keyOfChannel(channel), SHARDS);

/** Signed 32-bit hash of a channel name: the key of the Bloom filter that `outbox_tail` reads. */
export const hashOfName = (channel: string): number => murmur2(Buffer.from(channel));
