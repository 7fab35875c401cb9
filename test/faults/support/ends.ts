import type { Broker } from '../../../engines/broker/port';
import { createKafkaBroker } from '../../../engines/broker/kafka/broker';
import type { EventStore } from '../../../engines/event-store/port';

/** Where the logs end, past every link: what projections must have reached when all that is durable is applied. */
export interface Ends {
  /** Per partition of the topic, the offset after its last record. */
  records(topic: string): Promise<Map<number, number>>;
  /** Whether a checkpoint on the domain events is not before the last of them. */
  reached(position: string): Promise<boolean>;
}

/** Logs that are tables of the server's database. */
export const embeddedEnds = (query: (sql: string, values?: unknown[]) => Promise<any[]>): Ends => ({
  async records(topic) {
    const rows = await query(
      'select partition, next_offset from broker_partitions join broker_topics using (topic_id) where topic = $1',
      [topic],
    );
    return new Map(rows.map((row) => [row.partition, Number(row.next_offset)]));
  },
  async reached(position) {
    const [{ head }] = await query('select coalesce(max(position), 0) as head from domain_events');
    return Number(position) >= Number(head);
  },
});

/** Asked of the broker at each look: it may have died since the last one. */
export const kafkaEnds = (url: string): Pick<Ends, 'records'> => ({
  async records(topic) {
    let broker: Broker | undefined;
    try {
      broker = await createKafkaBroker({ url, start_timeout_ms: 5000 });
      return new Map([...(await broker.bounds(topic))].map(([partition, { next }]) => [partition, next]));
    } finally {
      await broker?.close();
    }
  },
});

export const eventStoreEnds = (events: Pick<EventStore, 'head' | 'compare'>): Pick<Ends, 'reached'> => ({
  async reached(position) {
    const head = await events.head();
    return head === null || (position !== '' && events.compare(position, head) >= 0);
  },
});
