import { SettingsError } from '../../kernel/settings/error';
import type { Queryable } from '../../engines/postgres/port';
import { SecretUnreadable, type SecretBox } from './port';
import type { SealedPlace } from './rotation';

/** Most rows that are tried per place. */
const TRIED = 20;

/**
 * Compares the configured master keys with the database. A row that no key opens may be left of a rotation; a place
 * without any row that opens belongs to other master keys.
 * @throws SettingsError in one line with the place
 */
export async function refuseForeignKeys(
  db: Queryable,
  secrets: Pick<SecretBox, 'open'>,
  places: readonly SealedPlace[],
): Promise<void> {
  for (const { what, table, column, key, where = 'true', context } of places) {
    const rows = await db.query<{ key: string; sealed: string }>(
      `select ${key}::text as key, ${column} as sealed from ${table} where ${where} limit ${TRIED}`,
    );
    const failures = rows.flatMap((row) => failureOf(secrets, row.sealed, context(row.key)) ?? []);
    if (rows.length > 0 && failures.length === rows.length)
      throw new SettingsError(
        `LUMIO_SECRETS__KEYS (secrets.keys): not the master keys of this database: ${what}: ${failures[0]!.message}`,
      );
  }
}

function failureOf(secrets: Pick<SecretBox, 'open'>, sealed: string, context: string): SecretUnreadable | undefined {
  try {
    secrets.open(sealed, context);
    return undefined;
  } catch (error) {
    if (error instanceof SecretUnreadable) return error;
    throw error;
  }
}
