import { batchOrigin, NO_TRACING, type Span, type Tracing } from '../../../engines/tracing/port';
import type { Batch } from './batch';
import type { Item } from '../dead-letter/dead-letters';

/**
 * Begins the span of a batch; its messages belong to the span when the whole batch is of one trace. Undefined while
 * tracing is off.
 */
export function beginBatchSpan(projection: string, batch: Batch, tracing: Tracing = NO_TRACING): Span | undefined {
  if (!tracing.on || batch.items.length === 0) return undefined;
  const origin = batchOrigin(batch.items.map(traceOf));
  const span = tracing.start(`project ${projection}`, {
    kind: 'consumer',
    ...origin,
    attributes: { 'messaging.batch.message_count': batch.items.length },
  });
  batch.trace = origin.links ? null : span.traceparent;
  return span;
}

const traceOf = (item: Item): string | null | undefined =>
  item.kind === 'record' ? item.record.trace : item.kind === 'event' ? item.event.metadata.traceparent : null;
