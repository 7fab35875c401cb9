import { LRUCache } from 'lru-cache';
import type { Vendor } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

/** Maximum apps whose pauses are cached, accounts' own among them. An evicted app calls and gets the pause again. */
const MAX_APPS = 10_000;
/** Age after which a process reads the others' pauses again, by one query for all its players. */
const LOOK_MS = 1_000;
const VENDOR = 'spotify' satisfies Vendor;

/** Pauses of apps: Spotify counts the calls of an app over all players and processes. */
export class AppPauses {
  private readonly until = new LRUCache<string, number>({ max: MAX_APPS });
  private looking: Promise<void> | undefined;
  private looked_at = -Infinity;

  constructor(private readonly db: Queryable | null) {}

  /** Milliseconds until the app may call again; 0 for an unknown app. */
  async left(client_id: string | null | undefined): Promise<number> {
    if (!client_id) return 0;
    if (performance.now() - this.looked_at > LOOK_MS) await this.look();
    const left_ms = (this.until.get(client_id) ?? 0) - performance.now();
    if (left_ms <= 0) this.until.delete(client_id);
    return Math.max(left_ms, 0);
  }

  /**
   * Begins a pause: effective here at once, in other processes when stored. Without the database each process pauses
   * alone.
   */
  async begin(client_id: string | null | undefined, ms: number): Promise<void> {
    if (!client_id) return;
    this.until.set(client_id, performance.now() + ms);
    const store = this.db?.query(
      `with over as (delete from app_pauses where until < clock_timestamp() - interval '1 minute')
       insert into app_pauses as p (vendor, client_id, until)
       values ($1, $2, clock_timestamp() + make_interval(secs => $3 / 1000.0))
       on conflict (vendor, client_id) do update set until = greatest(p.until, excluded.until)`,
      [VENDOR, client_id, ms],
      'app-pause-begin',
    );
    await store?.catch(alone);
  }

  private look(): Promise<void> {
    return (this.looking ??= this.read()
      .catch(alone)
      .finally(() => {
        this.looked_at = performance.now();
        this.looking = undefined;
      }));
  }

  private async read(): Promise<void> {
    const rows = await this.db?.query<{ client_id: string; left_ms: number }>(
      `select client_id, (extract(epoch from until - clock_timestamp()) * 1000)::float8 as left_ms
       from app_pauses where vendor = $1 and until > clock_timestamp()`,
      [VENDOR],
      'app-pauses',
    );
    for (const { client_id, left_ms } of rows ?? []) {
      const until = performance.now() + left_ms;
      this.until.set(client_id, Math.max(until, this.until.get(client_id) ?? 0));
    }
  }
}

/** An unavailable database disables the sharing only: the pauses that this process received stay in force here. */
const alone = () => undefined;
