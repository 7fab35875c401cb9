import { Collector } from '../../../lib/async/collector';
import type { Database } from '../../../engines/postgres/port';

const EVERY_MS = 50;
/** Waiting keys beyond this number are treated as made up: no address has that many real ones. */
const MAX_WAITING = 500;

/**
 * Distinguishes existing keys from made-up ones with one query per 50 ms: a flood of made-up keys costs the database
 * the same whatever its size, and a real key from the same address still passes.
 */
export class KeyExistenceBatch {
  private readonly asking: Collector<string, boolean>;

  constructor(private readonly db: Database) {
    this.asking = new Collector({ gather_ms: EVERY_MS, send: (hashes) => this.ask(hashes) });
  }

  /** `hash`: hex SHA-256 of the key. Rejects when the database fails. */
  async exists(hash: string): Promise<boolean> {
    return this.asking.waiting < MAX_WAITING && this.asking.add(hash);
  }

  private async ask(hashes: readonly string[]): Promise<boolean[]> {
    const rows = await this.db.query(
      `select key_hash from api_keys where key_hash = any($1)
       union all select key_hash from service_keys where key_hash = any($1)
       union all select key_hash from system_keys where key_hash = any($1)
       union all select token_hash from popout_tokens where token_hash = any($1)
       union all select token_hash from bound_tokens where token_hash = any($1)
       union all select token_hash from overlay_tokens where token_hash = any($1)
       union all select token_hash from widget_tokens where token_hash = any($1)`,
      [hashes],
      'credential-key-sieve',
    );
    const there = new Set(rows.map((row) => row.key_hash));
    return hashes.map((hash) => there.has(hash));
  }
}
