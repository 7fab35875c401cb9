import type { Logger } from '../../../engines/log/port';
import type { Counter, Metrics } from '../../../engines/metrics/port';
import type { Relay } from '../../../engines/relay/port';
import { keyOfChannel, shardOf } from '../../../lib/hash/shards';
import { LIVE_TOPIC } from './envelopes';
import { publishToShard, ShardTopics } from './shard-topics';

/** Longest message, in bytes. */
export const MESSAGE_BYTES = 64 * 1024;
/** Most messages of one account in a second. */
export const MESSAGES_PER_SECOND = 200;

/** Messages of each account in this second; cleared with it. */
class Rates {
  private second = -1;
  private readonly counts = new Map<string, number>();

  constructor(private readonly now: () => number) {}

  /** False when the account of this channel has had its messages. */
  take(channel: string): boolean {
    const second = Math.floor(this.now() / 1000);
    if (second !== this.second) {
      this.second = second;
      this.counts.clear();
    }
    const key = keyOfChannel(channel);
    const count = this.counts.get(key) ?? 0;
    if (count >= MESSAGES_PER_SECOND) return false;
    this.counts.set(key, count + 1);
    return true;
  }
}

type Reason = 'too_large' | 'too_many';
const droppedOf = (metrics: Metrics): ((reason: Reason) => Reason) => {
  const counter: Counter = metrics.counter(
    'lumio_websocket_transient_dropped_total',
    'Messages that are not stored and were dropped: over 64 KiB, or over 200 a second of one account',
    ['reason'],
  );
  return (reason) => {
    counter.inc(1, { reason });
    return reason;
  };
};

export interface TransientDeps {
  relay: Relay;
  metrics: Metrics;
  /** True while nodes of the previous release may be connected, which use a single topic. Default: false. */
  older_nodes_connected?: (() => Promise<boolean>) | undefined;
  /** Default: the clock. */
  now?: (() => number) | undefined;
}

/**
 * Sends messages that are not stored to those who are on their channels now, on all nodes, at most once. What is over
 * {@link MESSAGE_BYTES} or {@link MESSAGES_PER_SECOND} is dropped and counted.
 */
export class TransientSender {
  private readonly rates: Rates;
  private readonly dropped: (reason: Reason) => Reason;

  constructor(private readonly deps: TransientDeps) {
    this.rates = new Rates(deps.now ?? Date.now);
    this.dropped = droppedOf(deps.metrics);
  }

  /** `message` is the whole server message as JSON text. Answers why it was dropped, null when it was sent. */
  async publish(channel: string, message: string): Promise<Reason | null> {
    if (Buffer.byteLength(message) > MESSAGE_BYTES) return this.dropped('too_large');
    if (!this.rates.take(channel)) return this.dropped('too_many');
    await publishToShard(this.deps.relay, LIVE_TOPIC, channel, message);
    if (await this.deps.older_nodes_connected?.())
      await this.deps.relay.publish(LIVE_TOPIC, JSON.stringify({ channel, message, shard: shardOf(channel) }));
    return null;
  }
}

export interface TransientReceiverDeps {
  relay: Relay;
  metrics: Metrics;
  log: Logger;
  deliver(channel: string, message: string): void;
  now?: (() => number) | undefined;
}

/**
 * Hears the messages of those shards that have channels on this node. {@link MESSAGES_PER_SECOND} holds here too, for
 * what several nodes send.
 */
export class TransientReceiver {
  private readonly rates: Rates;
  private readonly dropped: (reason: Reason) => Reason;
  private readonly topics: ShardTopics;
  private readonly end_before: () => void;

  constructor(private readonly deps: TransientReceiverDeps) {
    this.rates = new Rates(deps.now ?? Date.now);
    this.dropped = droppedOf(deps.metrics);
    const { relay, log } = deps;
    this.topics = new ShardTopics({ relay, log, prefix: LIVE_TOPIC, heard: (...one) => this.received(...one) });
    this.end_before = deps.relay.subscribe(LIVE_TOPIC, (text) => this.onBefore(text));
  }

  /** The shard has its first channel here, or has none any more. */
  listen(shard: number, wanted: boolean): void {
    this.topics.listen(shard, wanted);
  }

  /**
   * Settles when messages of other nodes for this channel are received here; or, false, when the relay is unavailable:
   * then they are lost until it is back.
   */
  heard(channel: string): Promise<boolean> {
    return this.topics.heard(channel);
  }

  stop(): void {
    this.end_before();
    this.topics.stop();
  }

  /** Takes a message of an older release. Newer ones send here too, for such nodes, with their shard. */
  private onBefore(text: string): void {
    try {
      const { channel, message, shard } = JSON.parse(text) as Record<'channel' | 'message' | 'shard', unknown>;
      if (shard !== undefined) return;
      if (typeof channel === 'string' && typeof message === 'string') this.received(channel, message);
      else this.deps.log.warn({}, 'a relay message has no channel or no message');
    } catch (error) {
      this.deps.log.warn({ err: error }, 'a relay message is not JSON');
    }
  }

  private received(channel: string, message: string): void {
    if (this.rates.take(channel)) this.deps.deliver(channel, message);
    else this.dropped('too_many');
  }
}
