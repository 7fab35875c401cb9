import type { Logger } from '../../../engines/log/port';
import type { Relay } from '../../../engines/relay/port';
import { shardOf } from '../../../lib/hash/shards';

/** Topics of the relay, one a shard, of messages that are a channel's name, a line feed and a text. */
const topicOf = (prefix: string, shard: number): string => `${prefix}:${shard}`;

export const publishToShard = (relay: Relay, prefix: string, channel: string, text: string): Promise<void> =>
  relay.publish(topicOf(prefix, shardOf(channel)), `${channel}\n${text}`);

export interface ShardTopicsDeps {
  relay: Relay;
  log: Logger;
  /** Prefix of the topics' names. */
  prefix: string;
  heard(channel: string, text: string): void;
}

/** Hears the topics of those shards that are wanted here. */
export class ShardTopics {
  private readonly ends = new Map<number, () => void>();

  constructor(private readonly deps: ShardTopicsDeps) {}

  /** The shard has its first channel here, or has none any more. */
  listen(shard: number, wanted: boolean): void {
    if (!wanted) {
      this.ends.get(shard)?.();
      this.ends.delete(shard);
    } else if (!this.ends.has(shard)) {
      const { relay, prefix } = this.deps;
      this.ends.set(
        shard,
        relay.subscribe(topicOf(prefix, shard), (text) => this.onText(text)),
      );
    }
  }

  /** Settles when messages of other nodes for this channel's shard are received, or cannot be (false). */
  heard(channel: string): Promise<boolean> {
    return this.deps.relay.heard(topicOf(this.deps.prefix, shardOf(channel)));
  }

  stop(): void {
    for (const end of this.ends.values()) end();
    this.ends.clear();
  }

  private onText(text: string): void {
    const end = text.indexOf('\n');
    if (end > 0) this.deps.heard(text.slice(0, end), text.slice(end + 1));
    else this.deps.log.warn({}, 'a relay message has no channel');
  }
}
