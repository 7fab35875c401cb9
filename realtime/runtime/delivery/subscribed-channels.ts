import { hashOfName } from '../../../lib/hash/shards';
import { ShardMap } from './by-shard';

/** Bits for each name at least: one name in sixteen that nobody hears is taken for a heard one. */
const BITS_PER_NAME = 16;
const LEAST_BITS = 1_024;

/**
 * Values by the name of their channel, and which names there are as bits that the database can ask in constant time
 * (migrations/functions/outbox_tail.sql): the bit of a name that is here is set, and few others.
 */
export class SubscribedChannels<Value> extends ShardMap<Value> {
  /** Names that came since it was last cleared. */
  readonly fresh = new Set<string>();
  /** How many names set each bit. */
  private counts = new Uint32Array(LEAST_BITS);
  private bits = Buffer.alloc(LEAST_BITS / 8);

  override set(name: string, value: Value): this {
    if (this.has(name)) return super.set(name, value);
    super.set(name, value);
    this.fresh.add(name);
    if (this.size * BITS_PER_NAME > this.counts.length) this.resize(this.counts.length * 2);
    else this.count(name, 1);
    return this;
  }

  override delete(name: string): boolean {
    if (!super.delete(name)) return false;
    if (this.size * BITS_PER_NAME * 4 < this.counts.length && this.counts.length > LEAST_BITS)
      this.resize(this.counts.length / 2);
    else this.count(name, -1);
    return true;
  }

  /** The bits as they are now; what comes later does not change them. */
  filter(): Buffer {
    return Buffer.from(this.bits);
  }

  private resize(bits: number): void {
    this.counts = new Uint32Array(bits);
    this.bits = Buffer.alloc(bits / 8);
    for (const name of this.keys()) this.count(name, 1);
  }

  private count(name: string, by: 1 | -1): void {
    const bit = hashOfName(name) & (this.counts.length - 1);
    const count = (this.counts[bit]! += by);
    if (count === 0) this.bits[bit >> 3]! &= ~(1 << (bit & 7));
    else this.bits[bit >> 3]! |= 1 << (bit & 7);
  }
}
