import { applyErasedProfiles } from '../../services/identity/profiles';
import type { Blobs } from '../../engines/blobs/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { eraseRowsOf, type SweepDeps } from './erasure';

export interface NotedErasuresDeps extends SweepDeps {
  blobs: Blobs;
  wakeups: Pick<Wakeups, 'notify'>;
  /**
   * Destroys the keys named by notes of these days (default: all); returns the hash of the subject of each destroyed
   * key.
   */
  destroyNoted(days?: readonly string[]): Promise<string[]>;
  /**
   * Calls `erase` with the hash of each subject whose keys were destroyed by a note but whose rows are not yet erased.
   */
  erasePending(erase: (hash: string) => Promise<unknown>): Promise<void>;
}

/** Row of `installation`: the UTC day up to which the notes of erasures were applied to this database. */
const APPLIED_TO = 'erasures_applied_to';
/** Row of `installation`: the UTC day on which they were first applied. */
const FIRST_APPLIED = 'erasures_first_applied';
/** Days in which a node of the previous release may still run, whose notes are not in a folder of a day. */
const ROLLING_DAYS = 7;
const DAY_MS = 86_400_000;
/** Above this number of days all notes are listed at once. */
const MAX_DAYS = 100;

/**
 * Repeats erasures after the database was recovered to an earlier moment: keys, rows of read models over records,
 * profiles. Lists only notes since the day before the last call; a recovered database has an earlier last call, and
 * lists from there. In the first days it lists all. Idempotent.
 * @returns the number of keys and profiles erased
 */
export async function reapplyErasures(deps: NotedErasuresDeps): Promise<number> {
  const { db, wakeups } = deps;
  const [facts] = await db.query<{ today: string; applied_to: string | null; first_applied: string | null }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today,
       (select value from installation where name = $1) as applied_to,
       (select value from installation where name = $2) as first_applied`,
    [APPLIED_TO, FIRST_APPLIED],
  );
  const { today, applied_to, first_applied } = facts!;
  const rolling =
    first_applied === null ||
    applied_to === null ||
    Date.parse(applied_to) - Date.parse(first_applied) <= ROLLING_DAYS * DAY_MS;
  const days = rolling ? undefined : daysAround(applied_to, today);
  const hashes = await deps.destroyNoted(days);
  if (hashes.length > 0) wakeups.notify('subject-keys');
  await deps.erasePending((hash) => eraseRowsOf(deps, hash));
  const profiles = await applyErasedProfiles(deps, days);
  await db.query('insert into installation (name, value) values ($1, $2) on conflict do nothing', [
    FIRST_APPLIED,
    today,
  ]);
  await db.query(
    `insert into installation (name, value) values ($1, $2)
     on conflict (name) do update set value = excluded.value where installation.value < excluded.value`,
    [APPLIED_TO, today],
  );
  return hashes.length + profiles;
}

/** Days from the one before `from` to the one after `to`, since clocks differ; undefined above {@link MAX_DAYS}. */
function daysAround(from: string, to: string): string[] | undefined {
  const first = Date.parse(from) - DAY_MS;
  const count = (Date.parse(to) - first) / DAY_MS + 2;
  if (count > MAX_DAYS) return undefined;
  return Array.from({ length: count }, (_, n) => new Date(first + n * DAY_MS).toISOString().slice(0, 10));
}
