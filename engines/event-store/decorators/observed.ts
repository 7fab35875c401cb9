import type { Metrics } from '../../metrics/port';
import type { Tracing } from '../../tracing/port';
import { delegated } from './delegated';
import { RevisionConflict, type EventStore } from '../port';

const SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20];

/**
 * Decorates an event store with metrics of its appends, and with traces when tracing is on: events then have the
 * append's own traceparent.
 */
export function observedEventStore(
  store: EventStore,
  { metrics, tracing }: { metrics: Metrics; tracing: Tracing },
): EventStore {
  const seconds = metrics.histogram(
    'lumio_event_store_append_seconds',
    'From the call of an append to its outcome, by outcome (stored, conflict, failed)',
    SECONDS,
    ['outcome'],
  );
  const events = metrics.counter('lumio_event_store_events_total', 'Domain events stored by this process');
  const waiting_gauge = metrics.gauge('lumio_event_store_appends_waiting', 'Appends that wait for their outcome');
  let waiting = 0;
  const append: EventStore['append'] = async (writes, metadata) => {
    const started = performance.now();
    waiting_gauge.set((waiting += 1));
    const span = tracing.on
      ? tracing.start(`append ${category(writes[0]?.stream)}`, {
          kind: 'producer',
          parent: metadata.traceparent,
          attributes: { 'lumio.streams': writes.length },
        })
      : undefined;
    let outcome = 'failed';
    try {
      const traced = span?.traceparent ? { ...metadata, traceparent: span.traceparent } : metadata;
      const result = await store.append(writes, traced);
      outcome = 'stored';
      let count = 0;
      for (const write of writes) count += write.events.length;
      events.inc(count);
      span?.end();
      return result;
    } catch (error) {
      if (error instanceof RevisionConflict) outcome = 'conflict';
      span?.end(error);
      throw error;
    } finally {
      waiting_gauge.set((waiting -= 1));
      seconds.observe((performance.now() - started) / 1000, { outcome });
    }
  };
  return { ...delegated(store), append };
}

/**
 * Category of a stream, such as `api-key` of `api-key-0190…`; the first word of a stream without a UUID at its end.
 * Span names must not have ids and names.
 */
const category = (stream = 'none'): string =>
  /^([a-z][a-z_-]*)-[0-9a-f]{8}-[0-9a-f]{4}-/.exec(stream)?.[1] ?? /^[a-z_]+/.exec(stream)?.[0] ?? 'stream';
