import type { Logger } from '../log/port';
import type { Relay } from './port';

/**
 * The relay of one process: handlers run on a later turn of the loop than `publish`, as with a server in between, in
 * the order of publishing per topic. The error of a handler is logged and does not affect the others.
 */
export function createLocalRelay(options: { log?: Logger } = {}): Relay {
  const topics = new Map<string, Set<(message: string) => void>>();
  let queue: { topic: string; message: string }[] = [];
  let closed = false;

  function deliver(): void {
    const batch = queue;
    queue = [];
    for (const { topic, message } of batch) {
      for (const handler of [...(topics.get(topic) ?? [])]) {
        if (!topics.get(topic)?.has(handler)) continue; // ended by a handler before it
        try {
          handler(message);
        } catch (error) {
          options.log?.error({ err: error, topic }, 'a relay handler failed');
        }
      }
    }
  }

  return {
    async publish(topic, message) {
      if (closed) throw new Error('the relay is closed');
      if (queue.push({ topic, message }) === 1) setImmediate(deliver);
    },
    subscribe(topic, handler) {
      // Wrapped, so that a handler subscribed twice has two subscriptions, each with its own end.
      const own = (message: string) => handler(message);
      const handlers = topics.get(topic) ?? new Set();
      topics.set(topic, handlers.add(own));
      return () => {
        handlers.delete(own);
        if (handlers.size === 0 && topics.get(topic) === handlers) topics.delete(topic);
      };
    },
    heard: async () => true,
    async close() {
      closed = true;
      queue = [];
      topics.clear();
    },
  };
}
