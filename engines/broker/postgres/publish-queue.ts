import { type Bounds, Collector, fitting } from '../../../lib/async/collector';
import { type Ends, InvalidRecord, MAX_VALUE_BYTES, type NewRecord } from '../port';

/**
 * Most bytes that may wait. Beyond that, publishes are refused at once, because an unbounded queue would only hide that
 * the log is behind.
 */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** Encoded records of a single call of publish. */
export interface Publish<Item> {
  readonly items: readonly Item[];
  readonly bytes: number;
}

export interface PublishQueueOptions<Item> {
  topic: string;
  /** Bounds of one group; a publish that is larger by itself travels alone. */
  bounds: Bounds;
  /**
   * Makes a group durable, in its order. Resolves with the ends of each publish, or its error, in the order of the
   * group.
   * @throws the error of the whole group
   */
  send(group: readonly Publish<Item>[]): Promise<readonly (Ends | Error)[]>;
}

/**
 * Collects the publishes of one process to one topic. One group is in flight at a time, so that a key's records keep
 * their call order, also when it must be sent again.
 */
export class PublishQueue<Item> {
  private readonly collector: Collector<Publish<Item>, Ends>;
  private waiting_bytes = 0;

  constructor(private readonly options: PublishQueueOptions<Item>) {
    this.collector = new Collector({
      take: (waiting) => {
        const count = fitting(waiting, options.bounds, ({ items, bytes }) => ({ items: items.length, bytes }));
        return { count, group: waiting.slice(0, count) };
      },
      send: (group) =>
        options.send(group).finally(() => {
          for (const { bytes } of group) this.waiting_bytes -= bytes;
        }),
    });
  }

  /**
   * Settles when the group of these items has its outcome.
   * @throws Error at once when too many bytes wait already
   */
  add(items: readonly Item[], bytes: number): Promise<Ends> {
    if (this.waiting_bytes > MAX_WAITING_BYTES) {
      throw new Error(`the log takes ${this.options.topic} too slowly: ${this.waiting_bytes} bytes are waiting`);
    }
    this.waiting_bytes += bytes;
    return this.collector.add({ items, bytes });
  }

  /** Resolves when every publish accepted so far has its outcome. */
  idle(): Promise<void> {
    return this.collector.idle();
  }
}

/** @throws InvalidRecord for what no engine would take */
export function assertStorable(topic: string, { key, value }: NewRecord): void {
  if (key.includes('\0')) throw new InvalidRecord(`a record key of ${topic} holds a NUL character`);
  if (value.length > MAX_VALUE_BYTES) {
    throw new InvalidRecord(`a record of ${topic} has ${value.length} bytes, the log takes ${MAX_VALUE_BYTES}`);
  }
}
