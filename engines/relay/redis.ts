import { randomUUID } from 'node:crypto';
import { pause } from '../../lib/async/signal';
import type { Logger } from '../log/port';
import type { Metrics } from '../metrics/port';
import type { RedisLink } from '../redis/connection';
import { createLocalRelay } from './local';
import type { Relay } from './port';

export interface RedisRelayOptions {
  publisher: RedisLink;
  /** A link of its own: in subscriber mode a connection takes no other commands. */
  subscriber: RedisLink;
  /** Prefix of every name in Redis, so that several installations may share one server. */
  prefix: string;
  log: Logger;
  metrics: Metrics;
}

/** Longest wait of a subscriber for the server's confirmation. */
const HEARD_MS = 500;

/**
 * The relay across nodes, over Redis pub/sub. Subscribers of the publishing node receive a message at once and once,
 * whatever Redis does: this process delivers it, and drops the copy that returns with its own node id. While Redis is
 * unavailable the other nodes miss messages (the port guarantees at most once); each such message is counted in
 * `lumio_relay_lost_total`. Subscriptions are renewed on every new connection, and after the next answered ping when
 * one was refused or not answered. `publish` resolves when Redis has the message, or after its timeout.
 */
export function createRedisRelay(options: RedisRelayOptions): Relay {
  const { publisher, subscriber, log } = options;
  const local = createLocalRelay({ log });
  const node = randomUUID();
  const channel_prefix = `${options.prefix}relay:`;
  const lost = options.metrics.counter(
    'lumio_relay_lost_total',
    'Relay messages that may not have reached other nodes',
  );
  lost.inc(0);
  /** Topic to its number of subscriptions on this node. */
  const wanted = new Map<string, number>();
  /** Topics requested on this connection, with the answer: false when Redis refused or did not answer. */
  const asked = new Map<string, Promise<boolean>>();
  let closed = false;

  function reconcile(): void {
    if (closed || !subscriber.usable()) return;
    for (const topic of wanted.keys()) if (!asked.has(topic)) ask(topic);
  }
  function ask(topic: string): void {
    const answer: Promise<boolean> = subscriber.client.subscribe(channel_prefix + topic).then(
      () => true,
      (error: unknown) => {
        // Keeps the entry when a later connection has requested the topic again.
        if (asked.get(topic) === answer) asked.delete(topic);
        log.debug({ err: error, topic }, 'a relay subscription failed; it is tried again');
        return false;
      },
    );
    asked.set(topic, answer);
  }
  function release(topic: string): void {
    if (!asked.delete(topic) || !subscriber.usable()) return;
    subscriber.client.unsubscribe(channel_prefix + topic).catch((error: unknown) => {
      // Harmless: messages of a topic without subscribers are dropped in this process.
      log.debug({ err: error, topic }, 'a relay subscription could not be ended');
    });
  }

  const ends = [
    subscriber.onReady(() => {
      asked.clear();
      reconcile();
    }),
    // Requests topics again that Redis refused (an ACL, a server still loading) or did not answer.
    subscriber.onAnswer(reconcile),
    subscriber.onLost(() => asked.clear()),
  ];
  subscriber.client.on('message', (channel: string, text: string) => {
    if (closed || !channel.startsWith(channel_prefix)) return;
    const end = text.indexOf('\n');
    if (end < 0 || text.slice(0, end) === node) return;
    local
      .publish(channel.slice(channel_prefix.length), text.slice(end + 1))
      .catch((error: unknown) => log.error({ err: error, channel }, 'a relay message could not be handed on'));
  });

  return {
    async publish(topic, message) {
      await local.publish(topic, message);
      try {
        await publisher.client.publish(channel_prefix + topic, `${node}\n${message}`);
      } catch (error) {
        lost.inc();
        log.debug({ err: error, topic }, 'a relay message may not have reached other nodes');
      }
    },
    subscribe(topic, handler) {
      const end = local.subscribe(topic, handler);
      wanted.set(topic, (wanted.get(topic) ?? 0) + 1);
      reconcile();
      let ended = false;
      return () => {
        if (ended) return;
        ended = true;
        end();
        const left = (wanted.get(topic) ?? 1) - 1;
        if (left > 0) wanted.set(topic, left);
        else {
          wanted.delete(topic);
          release(topic);
        }
      };
    },
    async heard(topic) {
      reconcile();
      const answer = asked.get(topic);
      if (answer === undefined) return false;
      const answered = new AbortController();
      const late = pause(HEARD_MS, answered.signal).then(() => false);
      const is_heard = await Promise.race([answer, late]);
      answered.abort();
      return is_heard;
    },
    async close() {
      closed = true;
      for (const end of ends) end();
      await local.close();
    },
  };
}
