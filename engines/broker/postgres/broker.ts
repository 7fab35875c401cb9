import type pg from 'pg';
import type { Logger } from '../../log/port';
import { ProcessSession } from '../../postgres/process-session';
import type { Wakeups } from '../../wakeups/port';
import { ActiveSet } from '../../active-set';
import { RecentRecords } from '../recent-records';
import type { Bounds, Broker, BrokerRecord, ConsumeOptions, Consumer, Ends, NewRecord } from '../port';
import { PostgresConsumer } from './consumer';
import { PostgresLog } from './log';
import { PerTopic } from '../per-topic';
import { PublishGroups } from './publish-groups';

const READ_RECORDS = 5000;
const READ_BYTES = 4 * 1024 * 1024;
/** Below the 5 s that vendors wait for the answer to a webhook, so that a failed store is refused in time. */
const PUBLISH_TIMEOUT_MS = 4_000;

export interface PostgresBrokerOptions {
  pool: pg.Pool;
  /** Shows other members that this process lives; the caller closes it. Default: one of the broker's own. */
  session?: ProcessSession;
  wakeups: Wakeups;
  /**
   * Identity of the log, which checkpoints name; give the installation's id where several databases may come into play.
   * Default `postgres`.
   */
  id?: string;
  log?: Logger;
  /** Milliseconds within which a publish is tried. Default 4,000. */
  publish_timeout_ms?: number;
}

/**
 * The embedded broker: a partitioned log in PostgreSQL, see migrations/0003-broker.ts. Partitions are chosen as Kafka's
 * clients choose them. `close` stops its consumers and waits for its publishes; the pool stays the caller's.
 */
export function createPostgresBroker(options: PostgresBrokerOptions): Broker {
  return new PostgresBroker(options);
}

class PostgresBroker implements Broker {
  readonly id: string;
  private readonly log: PostgresLog;
  private readonly groups = new PerTopic((topic) => this.open(topic));
  private readonly consumers = new ActiveSet<Consumer>();
  /** Handovers of the topics that this process consumes. */
  private readonly handovers = new Map<string, RecentRecords>();
  private own_session: ProcessSession | undefined;
  private closed = false;

  constructor(private readonly options: PostgresBrokerOptions) {
    this.id = options.id ?? 'postgres';
    this.log = new PostgresLog(options.pool);
  }

  async ensureTopics(topics: readonly string[], partitions: number): Promise<void> {
    for (const topic of topics) await this.log.ensureTopic(topic, partitions);
  }

  async publish(topic: string, records: readonly NewRecord[]): Promise<Ends> {
    if (this.closed) throw new Error('the broker is closed');
    if (records.length === 0) return new Map();
    // Two calls in a row must keep their order: no await for a known topic, one shared wait for one that is being
    // looked up.
    const group = this.groups.get(topic);
    return group instanceof PublishGroups ? group.publish(records) : (await group).publish(records);
  }

  handsOver(topic: string): boolean {
    return this.handovers.has(topic);
  }

  consume(options: ConsumeOptions): Consumer {
    if (this.closed) throw new Error('the broker is closed');
    const handover = this.handovers.get(options.topic) ?? new RecentRecords();
    this.handovers.set(options.topic, handover);
    const { wakeups, log: logger } = this.options;
    const deps = { log: this.log, session: this.session, handover, wakeups, logger };
    return this.consumers.add(new PostgresConsumer(options, deps));
  }

  async *read(topic: string, partition: number, from: number, to?: number): AsyncIterable<BrokerRecord[]> {
    const info = await this.log.topic(topic);
    const bounds = (await this.log.bounds(info)).get(partition);
    if (!bounds) throw new Error(`there is no partition ${partition} of ${topic}`);
    const end = Math.min(to ?? bounds.next, bounds.next);
    const page = (at: number) =>
      this.log.fetch(info, {
        from: new Map([[partition, at]]),
        to: end,
        max_records: READ_RECORDS,
        max_bytes: READ_BYTES,
      });
    let ahead = from < end || from < bounds.earliest ? page(from) : undefined;
    while (ahead) {
      const { records, next } = await ahead;
      const at = next.get(partition) ?? end;
      // The next page is read while the caller works on this one.
      ahead = at < end ? page(at) : undefined;
      ahead?.catch(() => undefined);
      if (records.length > 0) yield records;
    }
  }

  async bounds(topic: string): Promise<Map<number, Bounds>> {
    return this.log.bounds(await this.log.topic(topic));
  }

  async trim(topic: string, partition: number, before: number): Promise<void> {
    await this.log.trim(await this.log.topic(topic), partition, before);
  }

  async close(): Promise<void> {
    this.closed = true;
    await this.consumers.stop();
    for (const group of this.groups.values()) await group.idle();
    await this.own_session?.close();
  }

  private get session(): ProcessSession {
    const { session, pool, log } = this.options;
    // pg.Pool keeps what it was made with.
    return (
      session ??
      (this.own_session ??= new ProcessSession((pool as unknown as { options: pg.ClientConfig }).options, log))
    );
  }

  private async open(topic: string): Promise<PublishGroups> {
    return new PublishGroups({
      pool: this.options.pool,
      topic: await this.log.topic(topic),
      timeout_ms: this.options.publish_timeout_ms ?? PUBLISH_TIMEOUT_MS,
      onPublished: (records) => {
        const handover = this.handovers.get(topic);
        if (handover) for (const [partition, written] of records()) handover.add(partition, written);
        this.options.wakeups.notify(`topic:${topic}`);
      },
    });
  }
}
