import { v4 } from 'uuid';
import { createKurrentEventStore } from '../../../engines/event-store/kurrentdb/store';
import {
  RevisionConflict,
  type EventBatch,
  type EventStore,
  type StoredEvent,
} from '../../../engines/event-store/port';
import type { StoreEngine } from '../../contracts/event-store';
import { Relay } from './relay';

/**
 * A part of a real server that looks empty: streams under a prefix of their own, and the log from here on. Nobody else
 * may write meanwhile. Links are cut at a relay when the connection string names one node; otherwise they stay whole.
 */
export async function realEngine(url: string): Promise<StoreEngine> {
  const [, before, host, port, after] = /^(\w+:\/\/(?:[^@]*@)?)([^/?,:]+)(?::(\d+))?(\?.*)?$/.exec(url) ?? [];
  const relay = host ? new Relay(host, Number(port ?? 2113)) : undefined;
  await relay?.up();
  const reached = relay ? `${before}127.0.0.1:${relay.port}${after ?? ''}` : url;
  const prefix = `t-${v4()}-`;
  const nodes: EventStore[] = [];
  const first = await createKurrentEventStore({ url: reached });
  const base = await first.head();
  nodes.push(first);
  return {
    async open() {
      const store = await createKurrentEventStore({ url: reached });
      nodes.push(store);
      return scoped(store, prefix, base);
    },
    breakLinks: async () => relay?.cut(),
    async close() {
      for (const store of nodes) await store.close();
      await relay?.down();
    },
  };
}

function scoped(store: EventStore, prefix: string, base: string | null): EventStore {
  const inside = (event: StoredEvent): StoredEvent => ({ ...event, stream: event.stream.slice(prefix.length) });
  const batchInside = ({ events, position }: EventBatch): EventBatch => ({ events: events.map(inside), position });
  return {
    id: store.id,
    async append(writes, metadata) {
      try {
        const prefixed = writes.map((write) => ({ ...write, stream: prefix + write.stream }));
        const { position, revisions } = await store.append(prefixed, metadata);
        const entries = Object.entries(revisions).map(([stream, revision]) => [stream.slice(prefix.length), revision]);
        return { position, revisions: Object.fromEntries(entries) as Record<string, number> };
      } catch (error) {
        if (!(error instanceof RevisionConflict)) throw error;
        throw new RevisionConflict(error.stream.slice(prefix.length), error.expected, error.actual);
      }
    },
    read: async (stream, from, options) => (await store.read(prefix + stream, from, options)).map(inside),
    async *readAll(after, filter) {
      for await (const batch of store.readAll(after ?? base, filter)) yield batchInside(batch);
    },
    subscribe: (options, onBatch) =>
      store.subscribe({ ...options, after: options.after ?? base }, (batch) => onBatch(batchInside(batch))),
    async head() {
      const head = await store.head();
      return head === base ? null : head;
    },
    compare: (a, b) => store.compare(a, b),
    close: () => store.close(),
  };
}
