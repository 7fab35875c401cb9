import { Collector } from '../kernel/collector';
import type { Database } from '../engines/postgres/port';

const EVERY_MS = 50;
/** Beyond this many at a time a key is taken for made up: more than any address with real ones has. */
const MOST_WAITING = 500;

/**
 * Tells keys that exist from made-up ones with one query for all that came within 50 ms: a flood of made-up keys costs
 * the database the same however large it is, and a real key from the same address still gets through.
 */
export class KeySieve {
  private readonly asking: Collector<string, boolean>;

  constructor(private readonly db: Database) {
    this.asking = new Collector({ gather_ms: EVERY_MS, send: (hashes) => this.ask(hashes) });
  }

  /** By the key's SHA-256 in hex; rejects when the database cannot say. */
  async exists(hash: string): Promise<boolean> {
    return this.asking.waiting < MOST_WAITING && this.asking.add(hash);
  }

  private async ask(hashes: readonly string[]): Promise<boolean[]> {
    const rows = await this.db.query(
      `select key_hash from api_keys where key_hash = any($1)
       union all select key_hash from service_keys where key_hash = any($1)
       union all select key_hash from system_keys where key_hash = any($1)
       union all select token_hash from popout_tokens where token_hash = any($1)
       union all select token_hash from bound_tokens where token_hash = any($1)`,
      [hashes],
      'credential-key-sieve',
    );
    const there = new Set(rows.map((row) => row.key_hash));
    return hashes.map((hash) => there.has(hash));
  }
}
