import type { Database, Queryable } from '../../engines/postgres/port';
import type { Logger } from '../../engines/log/port';

const FLUSH_MS = 10_000;

/**
 * Writes the last use of keys in batches: at most 10 s late, below the 15 s that the rulings allow. A killed process
 * loses the uses in memory, which costs only a time on a list.
 */
export class LastUses {
  private uses = new Map<string, number>();
  private timer: NodeJS.Timeout | undefined;
  private writing: Promise<void> = Promise.resolve();

  constructor(
    private readonly db: Database,
    private readonly log: Logger,
  ) {}

  touch(credential_id: string, now: number): void {
    this.uses.set(credential_id, now);
    this.timer ??= setTimeout(() => void this.flush(), FLUSH_MS).unref();
  }

  flush(): Promise<void> {
    clearTimeout(this.timer);
    this.timer = undefined;
    const uses = this.uses;
    if (uses.size === 0) return this.writing;
    this.uses = new Map();
    this.writing = this.writing.then(() => this.write(uses));
    return this.writing;
  }

  close(): Promise<void> {
    return this.flush();
  }

  private async write(uses: ReadonlyMap<string, number>): Promise<void> {
    try {
      // Sorted, so that nodes that write the same rows wait for each other and do not deadlock.
      const sorted = [...uses].sort(([a], [b]) => (a < b ? -1 : 1));
      await this.db.query(
        `insert into credential_uses (credential_id, last_used_at)
         select id, to_timestamp(at / 1000.0) from unnest($1::text[], $2::float8[]) as u (id, at)
         on conflict (credential_id) do update
           set last_used_at = greatest(credential_uses.last_used_at, excluded.last_used_at)`,
        [sorted.map(([id]) => id), sorted.map(([, at]) => at)],
      );
    } catch (error) {
      this.log.warn({ err: error, keys: uses.size }, 'last uses of keys could not be written');
    }
  }
}

/** Deletes the last uses of keys that no longer exist, a bounded number at a time. Returns the number deleted. */
export async function sweepLastUses(db: Queryable): Promise<number> {
  for (let swept = 0; ;) {
    // A read model that lags does not have a new key yet.
    const rows = await db.query(
      `delete from credential_uses where credential_id in (
         select u.credential_id from credential_uses u
         where u.last_used_at < now() - interval '1 day'
           and not exists (select from api_keys k where k.id::text = u.credential_id)
           and not exists (select from service_keys k where k.id::text = u.credential_id)
           and not exists (select from system_keys k where k.id::text = u.credential_id)
         limit 10000
       ) returning 1 as one`,
    );
    swept += rows.length;
    if (rows.length === 0) return swept;
  }
}
