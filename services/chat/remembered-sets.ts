import { LRUCache } from 'lru-cache';
import type { Logger } from '../../engines/log/port';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { HttpFailed } from '../../vendors/http/port';

export interface RememberedSetsOptions<T> {
  max_bytes: number;
  /** Key of an item within its set; of equal ones the first counts. */
  nameOf(item: T): string;
  /** Throws as `HttpClient.ask`. */
  fetch(key: string): Promise<readonly T[]>;
  log: Logger;
}

interface Kept<T> {
  items: readonly T[];
  by_name: ReadonlyMap<string, T>;
}

/** Time for which a set is fresh. */
const FRESH_MS = 600_000;
/** Time until a vendor that failed is called again. */
const AGAIN_MS = 60_000;
/** Memory of an item besides its text: its object, and its place in the index. */
const ITEM_BYTES = 200;
/** Most fetches that run in the background at once. */
const MAX_BACKGROUND = 8;

/** Sets of vendors in memory, by key. One fetch of a set runs at a time; while a vendor fails its last set counts. */
export class RememberedSets<T extends object> {
  private readonly kept: LRUCache<string, Kept<T>>;
  private readonly background = new Set<string>();

  constructor(private readonly options: RememberedSetsOptions<T>) {
    this.kept = new LRUCache<string, Kept<T>>({
      ttl: FRESH_MS,
      maxSize: options.max_bytes,
      sizeCalculation: ({ items }, key) =>
        items.reduce((sum, item) => sum + JSON.stringify(item).length * 2 + ITEM_BYTES, key.length * 2 + ITEM_BYTES),
      ignoreFetchAbort: true,
      noDeleteOnFetchRejection: true,
      noDeleteOnStaleGet: true,
      fetchMethod: async (key, stale, { options: entry }) => {
        try {
          return indexed(await options.fetch(key), options.nameOf);
        } catch (error) {
          if (![HttpFailed, NotSent, OutcomeUnknown].some((kind) => error instanceof kind)) throw error;
          entry.ttl = AGAIN_MS;
          return stale ?? NONE;
        }
      },
    });
  }

  /** The set; empty while a vendor fails that has never answered. */
  async read(key: string): Promise<readonly T[]> {
    return (await this.kept.fetch(key))?.items ?? [];
  }

  /** The set as far as it is in memory, at once; an absent or older one is fetched in the background. */
  known(key: string): ReadonlyMap<string, T> {
    const kept = this.kept.get(key, { allowStale: true });
    if (kept === undefined || this.kept.getRemainingTTL(key) <= 0) this.refresh(key);
    return (kept ?? NONE).by_name;
  }

  private refresh(key: string): void {
    if (this.background.has(key) || this.background.size >= MAX_BACKGROUND) return;
    this.background.add(key);
    this.kept
      .fetch(key)
      .catch((error: unknown) => this.options.log.error({ err: error, key }, 'a set of a vendor could not be read'))
      .finally(() => this.background.delete(key));
  }
}

const NONE: Kept<never> = { items: [], by_name: new Map<string, never>() };

function indexed<T>(items: readonly T[], nameOf: (item: T) => string): Kept<T> {
  const by_name = new Map<string, T>();
  for (const item of items) if (!by_name.has(nameOf(item))) by_name.set(nameOf(item), item);
  return { items, by_name };
}
