import { batchOrigin, traceIdOf, type Tracing } from '../tracing/port';
import type { RecordLog } from './port';

/**
 * Decorates a record log with a span for each append; records of the span's trace get the span's traceparent. Only for
 * enabled tracing.
 */
export function tracedRecordLog(log: RecordLog, tracing: Tracing): RecordLog {
  return {
    async append(topic, records) {
      const span = tracing.start(`publish ${topic}`, {
        kind: 'producer',
        ...batchOrigin(records.map(({ trace }) => trace)),
        attributes: { 'messaging.destination.name': topic, 'messaging.batch.message_count': records.length },
      });
      const own = traceIdOf(span.traceparent);
      try {
        const ends = await log.append(
          topic,
          records.map((record) =>
            record.trace === null || traceIdOf(record.trace) === own ? { ...record, trace: span.traceparent } : record,
          ),
        );
        span.end();
        return ends;
      } catch (error) {
        span.end(error);
        throw error;
      }
    },
    subjectsOf: (records) => log.subjectsOf(records),
    decode: (records) => log.decode(records),
  };
}
