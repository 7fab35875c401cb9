import { applyErasedProfiles } from '../access/profiles';
import type { Blobs } from '../engines/blobs/port';
import type { Wakeups } from '../engines/wakeups/port';
import { eraseRowsOf, type SweepDeps } from './erasure';

export interface NotedErasuresDeps extends SweepDeps {
  blobs: Blobs;
  wakeups: Pick<Wakeups, 'notify'>;
  /**
   * Destroys the keys that notes of these days (default: all) name; returns the hash of the subject of each key that
   * went.
   */
  destroyNoted(days?: readonly string[]): Promise<string[]>;
  /** Calls `erase` with the hash of each subject whose keys went by a note and whose rows have not yet. */
  erasePending(erase: (hash: string) => Promise<unknown>): Promise<void>;
}

/** Fact of `installation`: the UTC day up to which the notes of erasures were applied to this database. */
const APPLIED_TO = 'erasures_applied_to';
const DAY_MS = 86_400_000;
/** More days than this are listed as one. */
const MAX_DAYS = 100;

/**
 * Destroys again what was erased, where the database was recovered to a moment before: keys, rows of read models over
 * records, profiles. Only notes since the day before the last call are listed; a recovered database remembers an
 * earlier call, and lists from there. Run twice it does the same.
 * @returns how many keys and profiles went
 */
export async function reapplyErasures(deps: NotedErasuresDeps): Promise<number> {
  const { db, wakeups } = deps;
  const [facts] = await db.query<{ today: string; applied_to: string | null }>(
    `select to_char(now() at time zone 'UTC', 'YYYY-MM-DD') as today,
       (select value from installation where name = $1) as applied_to`,
    [APPLIED_TO],
  );
  const { today, applied_to } = facts!;
  const days = applied_to === null ? undefined : daysAround(applied_to, today);
  const hashes = await deps.destroyNoted(days);
  if (hashes.length > 0) wakeups.notify('subject-keys');
  await deps.erasePending((hash) => eraseRowsOf(deps, hash));
  const profiles = await applyErasedProfiles(deps, days);
  await db.query(
    `insert into installation (name, value) values ($1, $2)
     on conflict (name) do update set value = excluded.value where installation.value < excluded.value`,
    [APPLIED_TO, today],
  );
  return hashes.length + profiles;
}

/** Every day from the one before `from` to the one after `to`, since clocks differ; undefined when they are many. */
function daysAround(from: string, to: string): string[] | undefined {
  const first = Date.parse(from) - DAY_MS;
  const count = (Date.parse(to) - first) / DAY_MS + 2;
  if (count > MAX_DAYS) return undefined;
  return Array.from({ length: count }, (_, n) => new Date(first + n * DAY_MS).toISOString().slice(0, 10));
}
