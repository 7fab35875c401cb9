import { pause, yieldToEventLoop } from './signal';

export interface CollectorOptions<Item, Group, Outcome> {
  /**
   * The next group: the first `count` of those that wait (at least one), as `send` takes them.
   * Default: all, as they are.
   */
  take?(waiting: readonly Item[]): { count: number; group: Group };
  /**
   * Answers for each item, by its place, what became of it: an outcome, or the error that it alone has.
   * @throws why all of them failed
   */
  send(group: Group): Promise<readonly (Outcome | Error)[]>;
  /** Milliseconds in which the next group gathers before it leaves. Default: one turn of the event loop. */
  gather_ms?: number | (() => number);
}

interface Pending<Outcome> {
  resolve(outcome: Outcome): void;
  reject(error: unknown): void;
}

/**
 * Lets many callers share one errand: what is given in one turn of the event loop, or while a group is on its way,
 * leaves together. One group is on its way at a time, in the order of the calls. The callers just answered get their
 * turn before the next group leaves, so that what they give next joins it.
 */
export class Collector<Item, Outcome, Group = readonly Item[]> {
  private readonly items: Item[] = [];
  private readonly pending: Pending<Outcome>[] = [];
  private running: Promise<void> | undefined;

  constructor(private readonly options: CollectorOptions<Item, Group, Outcome>) {}

  /** How many wait for their group. */
  get waiting(): number {
    return this.items.length;
  }

  /** Settles when the group that the item left with has its outcome. */
  add(item: Item): Promise<Outcome> {
    return new Promise((resolve, reject) => {
      this.items.push(item);
      this.pending.push({ resolve, reject });
      this.running ??= this.run();
    });
  }

  /** Resolves when everything given so far has its outcome. */
  async idle(): Promise<void> {
    while (this.running) await this.running;
  }

  private async run(): Promise<void> {
    const { take, send, gather_ms } = this.options;
    do {
      await (gather_ms === undefined
        ? yieldToEventLoop()
        : pause(typeof gather_ms === 'number' ? gather_ms : gather_ms()));
      const { count, group } = take?.(this.items) ?? { count: this.items.length, group: this.items.slice() as Group };
      this.items.splice(0, count);
      const pending = this.pending.splice(0, count);
      try {
        const outcomes = await send(group);
        pending.forEach(({ resolve, reject }, place) => {
          const outcome = outcomes[place]!;
          if (outcome instanceof Error) reject(outcome);
          else resolve(outcome);
        });
      } catch (error) {
        for (const { reject } of pending) reject(error);
      }
    } while (this.items.length > 0);
    this.running = undefined;
  }
}

/** Limits of one group. */
export interface Bounds {
  items: number;
  bytes: number;
}

/** How many of the items from `from` on stay within the bounds; at least one, which may be larger by itself. */
export function fitting<Item>(
  items: readonly Item[],
  bounds: Bounds,
  sizeOf: (item: Item) => { items: number; bytes: number },
  from = 0,
): number {
  let held = 0;
  let bytes = 0;
  let count = 0;
  for (; from + count < items.length; count += 1) {
    const size = sizeOf(items[from + count]!);
    held += size.items;
    bytes += size.bytes;
    if (count > 0 && (held > bounds.items || bytes > bounds.bytes)) break;
  }
  return count;
}

/** The items in groups that {@link fitting} allows, in order. */
export function* slices<Item>(
  items: readonly Item[],
  bounds: Bounds,
  sizeOf: (item: Item) => { items: number; bytes: number },
): Generator<readonly Item[]> {
  for (let from = 0; from < items.length;) {
    const to = from + fitting(items, bounds, sizeOf, from);
    yield from === 0 && to === items.length ? items : items.slice(from, to);
    from = to;
  }
}
