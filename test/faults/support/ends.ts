import type { Broker } from '../../../engines/broker/port';
import { createKafkaBroker } from '../../../engines/broker/kafka/broker';
import type { EventStore } from '../../../engines/event-store/port';
import { TOPICS } from '../../../domain/records';

/** Where the logs end, past every link: what projections must have reached when all that is durable is applied. */
export interface Ends {
  /** Per partition of `platform-events`, the offset after its last record. */
  records(): Promise<Map<number, number>>;
  /** Whether a checkpoint on the domain events is not before the last of them. */
  reached(position: string): Promise<boolean>;
}

/** Logs that are tables of the server's database. */
export const embeddedEnds = (query: (sql: string) => Promise<any[]>): Ends => ({
  async records() {
    const rows = await query(
      `select partition, next_offset from broker_partitions join broker_topics using (topic_id) where topic = 'platform-events'`,
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
  async records() {
    let broker: Broker | undefined;
    try {
      broker = await createKafkaBroker({ url, start_timeout_ms: 5000 });
      return new Map(
        [...(await broker.bounds(TOPICS.platform_events))].map(([partition, { next }]) => [partition, next]),
      );
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
