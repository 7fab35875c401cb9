import type { EventStore, StoredEvent } from '../../engines/event-store/port';

/** Maximum of cached ids per stream, the newest ones: some 1 MB. */
const MAX_IDS = 5_000;
const PAGE = 1000;
/** Allowed difference between the clocks of the idempotency keys and of the event store. */
const SKEW_MS = 60_000;

/** Ids of a stream's events that derive from a seed, with the revisions of these events. */
export class SeededIds {
  private readonly found = new Map<string, Pick<StoredEvent, 'revision' | 'recorded_at'>>();
  /** Newest event whose id was evicted. */
  private forgotten: { revision: number; recorded_at: string } | undefined;

  constructor(private readonly max_ids = MAX_IDS) {}

  get size(): number {
    return this.found.size;
  }

  /** Records the event's id if it derives from a seed. Events are added in their order. */
  add({ id, revision, recorded_at }: Pick<StoredEvent, 'id' | 'revision' | 'recorded_at'>): void {
    if (!isSeeded(id)) return;
    this.found.set(id, { revision, recorded_at });
    if (this.found.size <= this.max_ids) return;
    const [oldest, event] = this.found.entries().next().value!;
    this.found.delete(oldest);
    this.forgotten = event;
  }

  /**
   * Revision of the event with this id, up to the loaded state; undefined without one. Reads the stream only for an id
   * that may be older than all cached ones.
   * @param since Unix milliseconds at which the seed was made; undefined: at any time
   */
  async revisionOf(
    events: Pick<EventStore, 'read'>,
    stream: string,
    id: string,
    since: number | undefined,
  ): Promise<number | undefined> {
    const known = this.found.get(id);
    if (known !== undefined || this.forgotten === undefined) return known?.revision;
    const oldest = since === undefined ? -Infinity : since - SKEW_MS;
    let from = this.forgotten.revision;
    if (Date.parse(this.forgotten.recorded_at) < oldest) return undefined;
    while (from >= 0) {
      const page = await events.read(stream, from, { limit: PAGE, backwards: true });
      const found = page.find((event) => event.id === id);
      if (found !== undefined) return found.revision;
      const last = page.at(-1);
      if (last === undefined || Date.parse(last.recorded_at) < oldest) return undefined;
      from = last.revision - 1;
    }
    return undefined;
  }
}

/** Whether an id derives from a seed: a UUID of version 5. Other ids are random and never looked up again. */
const isSeeded = (id: string): boolean => id[14] === '5';
