import type { Database } from '../engines/postgres/port';

const EVERY_MS = 50;
/** Beyond this many at a time a key is taken for made up: more than any address with real ones has. */
const MOST_WAITING = 500;

interface Waiting {
  hash: string;
  resolve(exists: boolean): void;
  reject(error: unknown): void;
}

/**
 * Tells keys that exist from made-up ones with one query for all that came within 50 ms: a flood of made-up keys costs
 * the database the same however large it is, and a real key from the same address still gets through.
 */
export class KeySieve {
  private waiting: Waiting[] = [];
  private asking = false;

  constructor(private readonly db: Database) {}

  /** By the key's SHA-256 in hex; rejects when the database cannot say. */
  exists(hash: string): Promise<boolean> {
    if (this.waiting.length >= MOST_WAITING) return Promise.resolve(false);
    return new Promise((resolve, reject) => {
      this.waiting.push({ hash, resolve, reject });
      if (this.asking) return;
      this.asking = true;
      setTimeout(() => void this.ask(), EVERY_MS);
    });
  }

  private async ask(): Promise<void> {
    const asked = this.waiting;
    this.waiting = [];
    try {
      const rows = await this.db.query(
        `select key_hash from api_keys where key_hash = any($1)
         union all select key_hash from system_keys where key_hash = any($1)`,
        [asked.map(({ hash }) => hash)],
        'credential-key-sieve',
      );
      const there = new Set(rows.map((row) => row.key_hash));
      for (const { hash, resolve } of asked) resolve(there.has(hash));
    } catch (error) {
      for (const { reject } of asked) reject(error);
    }
    this.asking = this.waiting.length > 0;
    if (this.asking) setTimeout(() => void this.ask(), EVERY_MS);
  }
}
