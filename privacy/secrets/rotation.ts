import type { Database } from '../../engines/postgres/port';
import { SecretUnreadable, type SecretBox } from './port';

/** A column with sealed texts. */
export interface SealedPlace {
  /** For people, in the plural: `subject keys`. */
  what: string;
  table: string;
  column: string;
  /** Column or SQL expression that identifies a row. */
  key: string;
  key_type: 'uuid' | 'text' | 'boolean';
  /** SQL condition for tables where only some rows are sealed. */
  where?: string;
  /** Encryption context of the secret in the row of this key. */
  context(key: string): string;
}

export interface KeyUse {
  key_id: string;
  what: string;
  count: number;
}

export interface RotationOptions {
  db: Database;
  secrets: SecretBox;
  places: readonly SealedPlace[];
  /** Rows of one transaction. Default 500. */
  batch?: number;
  onProgress?(done: number, total: number, what: string): void;
}

export interface Rotation {
  rewrapped: number;
  /** Rows that no configured key opens; they stay unchanged. */
  unreadable: { what: string; key: string; reason: string }[];
}

/** Counts sealed texts by kind and by master key, including keys that are not configured. */
export async function keyUses(db: Database, places: readonly SealedPlace[]): Promise<KeyUse[]> {
  const uses: KeyUse[] = [];
  for (const { what, table, column, where = 'true' } of places) {
    const rows = await db.query<{ key_id: string; count: number }>(
      `select split_part(${column}, '.', 2) as key_id, count(*) as count from ${table} where ${where} group by 1
         order by 1`,
    );
    uses.push(...rows.map(({ key_id, count }) => ({ key_id, what, count })));
  }
  return uses;
}

/**
 * Seals all texts of other master keys under the first one. Each batch is a transaction of its own, which locks only
 * its rows: the rotation may be interrupted at any moment and repeated, next to a running Lumio or another rotation.
 * Texts written meanwhile by a process without the new key as its first may be left; {@link keyUses} counts them.
 */
export async function rotateKeys(options: RotationOptions): Promise<Rotation> {
  const { db, secrets, places, batch = 500, onProgress } = options;
  const [current] = secrets.key_ids;
  const uses = await keyUses(db, places);
  const total = uses.filter(({ key_id }) => key_id !== current).reduce((sum, { count }) => sum + count, 0);
  const result: Rotation = { rewrapped: 0, unreadable: [] };
  for (const place of places) {
    let after: string | null = null;
    do {
      const from: string | null = after;
      const done: Batch = await db.transaction((tx) => rewrapBatch(tx, secrets, place, from, batch));
      result.rewrapped += done.rewrapped;
      result.unreadable.push(...done.unreadable);
      onProgress?.(result.rewrapped + result.unreadable.length, total, place.what);
      after = done.last;
    } while (after !== null);
  }
  return result;
}

interface Batch extends Rotation {
  /** Key of the last row; null when no row was left. */
  last: string | null;
}

async function rewrapBatch(
  tx: Pick<Database, 'query'>,
  secrets: SecretBox,
  { what, table, column, key, key_type, where = 'true', context }: SealedPlace,
  after: string | null,
  batch: number,
): Promise<Batch> {
  const rows = await tx.query<{ key: string; sealed: string }>(
    `select ${key}::text as key, ${column} as sealed from ${table}
     where ${where} and ($1::${key_type} is null or ${key} > $1::${key_type}) and split_part(${column}, '.', 2) <> $2
     order by ${key} limit $3 for update`,
    [after, secrets.key_ids[0], batch],
  );
  const fresh: { key: string; sealed: string }[] = [];
  const unreadable: Rotation['unreadable'] = [];
  for (const row of rows) {
    const sealed_for = context(row.key);
    try {
      fresh.push({ key: row.key, sealed: secrets.seal(secrets.open(row.sealed, sealed_for), sealed_for) });
    } catch (error) {
      if (!(error instanceof SecretUnreadable)) throw error;
      unreadable.push({ what, key: row.key, reason: error.message });
    }
  }
  await tx.query(
    `update ${table} set ${column} = fresh.sealed
     from unnest($1::text[], $2::text[]) as fresh (key, sealed) where ${key} = fresh.key::${key_type}`,
    [fresh.map((row) => row.key), fresh.map((row) => row.sealed)],
  );
  return { rewrapped: fresh.length, unreadable, last: rows.length === 0 ? null : rows[rows.length - 1]!.key };
}
