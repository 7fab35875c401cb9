import { LockTaken, LOCKS } from '../../engines/locks/port';
import type { Database, Queryable } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';
import { rebuild, RebuildRunning, type RebuildOptions } from './rebuild';
import { ident } from '../../kernel/sql';
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
  /** Bytes free where the database keeps its files; null, or absent, when nobody can tell. */
  freeBytes?: () => Promise<number | null>;
}

/**
 * Rows of a new version may be longer than those of the old, and while they are written so is the log of the database.
 */
const MARGIN = 1.5;
const LEAST_BYTES = 64 * 1024 ** 2;

/**
 * Builds the projection's tables beside the live ones and swaps them in; goes on with what an interrupted build left.
 * One such build runs at a time in all processes. False: another one runs, ask again later.
 * @throws NoSpace before any work; whatever {@link rebuild} throws
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

/** Of tables with their partitions and indexes; none for what is not there. */
async function bytesOf(db: Queryable, tables: readonly string[]): Promise<number> {
  const [row] = await db.query<{ bytes: number }>(
    `select coalesce(sum(pg_total_relation_size(relid)), 0)::int8 as bytes
     from (select to_regclass(name) as root from unnest($1::text[]) as name) t, pg_partition_tree(root)`,
    [tables],
  );
  return row!.bytes;
}
