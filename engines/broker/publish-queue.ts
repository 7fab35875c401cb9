import { type Ends, InvalidRecord, MAX_VALUE_BYTES, type NewRecord } from './port';

/**
 * Bytes that may wait for their turn. Beyond it publishes are refused at once: a queue without end would only hide that
 * the log is behind.
 */
const MAX_WAITING_BYTES = 64 * 1024 * 1024;

/** What one call of publish gave, encoded. */
export interface Publish<Item> {
  readonly items: readonly Item[];
  readonly bytes: number;
}

export interface PublishQueueOptions<Item> {
  topic: string;
  /** Bounds of one group; a publish that is larger by itself travels alone. */
  max_items: number;
  max_bytes: number;
  /**
   * Makes a group durable, in its order. Answers for each publish, by its place in the group, where its records lie, or
   * why it failed.
   * @throws why all of them failed
   */
  send(group: readonly Publish<Item>[]): Promise<readonly (Ends | Error)[]>;
}

interface Pending<Item> extends Publish<Item> {
  resolve(ends: Ends): void;
  reject(error: Error): void;
}

/**
 * Collects the publishes of one process to one topic: those that arrive in one turn of the event loop, or while a group
 * is on its way, leave together. One group is in flight at a time, so that a key's records keep their call order, also
 * when it must be sent again.
 */
export class PublishQueue<Item> {
  private queue: Pending<Item>[] = [];
  private waiting_bytes = 0;
  private running: Promise<void> | undefined;

  constructor(private readonly options: PublishQueueOptions<Item>) {}

  /**
   * Settles when the group that these items left with has its outcome. @throws Error at once when too much waits
   * already
   */
  add(items: readonly Item[], bytes: number): Promise<Ends> {
    if (this.waiting_bytes > MAX_WAITING_BYTES) {
      throw new Error(`the log takes ${this.options.topic} too slowly: ${this.waiting_bytes} bytes are waiting`);
    }
    this.waiting_bytes += bytes;
    return new Promise((resolve, reject) => {
      this.queue.push({ items, bytes, resolve, reject });
      this.running ??= new Promise<void>((started) => setImmediate(started)).then(() => this.run());
    });
  }

  /** Resolves when everything taken so far has its outcome. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    while (this.queue.length > 0) {
      const group = this.take();
      try {
        const outcomes = await this.options.send(group);
        group.forEach(({ resolve, reject }, place) => {
          const outcome = outcomes[place]!;
          if (outcome instanceof Error) reject(outcome);
          else resolve(outcome);
        });
      } catch (error) {
        for (const { reject } of group) reject(error as Error);
      }
      for (const { bytes } of group) this.waiting_bytes -= bytes;
      // The callers just answered get their turn, so that what they publish next joins the next group.
      await new Promise<void>((resume) => setImmediate(resume));
    }
    this.running = undefined;
  }

  private take(): Pending<Item>[] {
    const { max_items, max_bytes } = this.options;
    let taken = 0;
    let items = 0;
    let bytes = 0;
    for (const pending of this.queue) {
      items += pending.items.length;
      bytes += pending.bytes;
      if (taken > 0 && (items > max_items || bytes > max_bytes)) break;
      taken += 1;
    }
    return this.queue.splice(0, taken);
  }
}

/** @throws InvalidRecord for what no engine would take */
export function assertStorable(topic: string, { key, value }: NewRecord): void {
  if (key.includes('\0')) throw new InvalidRecord(`a record key of ${topic} holds a NUL character`);
  if (value.length > MAX_VALUE_BYTES) {
    throw new InvalidRecord(`a record of ${topic} has ${value.length} bytes, the log takes ${MAX_VALUE_BYTES}`);
  }
}
