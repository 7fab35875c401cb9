import { LockTaken, LOCKS } from '../../../engines/locks/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { rebuild, RebuildRunning, type RebuildOptions } from './rebuild';
import { ident } from '../../../kernel/sql';
import { shadowOf } from './shadow';

/** A second copy of the tables would not fit. */
export class NoSpace extends Error {
  constructor(projection: string, needed: number, free: number) {
    const mib = (bytes: number) => `${Math.ceil(bytes / 1024 ** 2)} MiB`;
    super(`projection ${projection}: its new tables may take ${mib(needed)}, and ${mib(free)} are free`);
    this.name = 'NoSpace';
  }
}

export interface BuildBesideDeps extends Omit<RebuildOptions, 'projections' | 'name' | 'signal'> {
  db: Database;
  /** Free bytes of the database's file system; null, or absent, when unknown. */
  freeBytes?: () => Promise<number | null>;
}

/** Rows of a new version may be longer than the old ones, and writing them also fills the database's log. */
const MARGIN = 1.5;
const LEAST_BYTES = 64 * 1024 ** 2;

/**
 * Builds the projection's tables next to the live ones and swaps them in; continues an interrupted build. One such
 * build runs at a time in all processes. Returns false while another one runs; the caller retries later.
 * @throws NoSpace before any work; any error of {@link rebuild}
 */
export async function buildBeside(deps: BuildBesideDeps, p: Projection, signal: AbortSignal): Promise<boolean> {
  try {
    return await deps.db.hold(LOCKS.projection_build, async () => {
      await checkSpace(deps, p);
      await rebuild({ ...deps, projections: [p], name: p.name, signal });
      return true;
    });
  } catch (error) {
    if (error instanceof LockTaken || error instanceof RebuildRunning) return false;
    throw error;
  }
}

async function checkSpace({ db, freeBytes }: BuildBesideDeps, p: Projection): Promise<void> {
  const free = (await freeBytes?.()) ?? null;
  if (free === null) return;
  const live = await bytesOf(db, p.tables.map(ident));
  const shadow = ident(shadowOf(p.name));
  const built = await bytesOf(
    db,
    p.tables.map((table) => `${shadow}.${ident(table)}`),
  );
  const needed = Math.max(LEAST_BYTES, live * MARGIN - built);
  if (needed > free) throw new NoSpace(p.name, needed, free);
}

/** Size of the tables with their partitions and indexes; 0 for a missing table. */
async function bytesOf(db: Queryable, tables: readonly string[]): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(relid)), 0)::int8 as bytes
     from (select to_regclass(name) as root from unnest($1::text[]) as name) t, pg_partition_tree(root)`,
    [tables],
  );
  return row!.bytes;
}
