import type { Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { sourceOf } from './checkpoints';
import { ident } from '../../../kernel/sql';

/** Moves the dead letters of the new tables to the live ones; returns their number. */
export async function mergeDeadLetters(tx: Queryable, shadow: string): Promise<number> {
  const columns = `projection, source, partition, position, stream, revision, type, account_id, record,
   record_key, headers,
    event, appended_at, reason, error, attempts, status, first_failed_at, last_failed_at, settled_at, silent`;
  const merged = await tx.query(
    `insert into public.dead_letters as d (${columns}) select ${columns} from ${ident(shadow)}.dead_letters order by id
     on conflict (projection, source, partition, position) do update
       set status = 'parked', settled_at = null, reason = excluded.reason, error = excluded.error, silent = true,
           last_failed_at = excluded.last_failed_at, attempts = d.attempts + 1
     returning 1 as one`,
  );
  return merged.length;
}

/** Sets the live checkpoints to `at`, by partition, and to this program's version. */
export async function takeOverCheckpoints(
  tx: Queryable,
  p: Projection,
  engine: string,
  at: ReadonlyMap<number, string>,
): Promise<void> {
  const partitions = [...at.keys()];
  await tx.query(
    `insert into checkpoints (projection, source, partition, engine, version, position)
     select $1, $2, partition, $3, $4, position from unnest($5::integer[], $6::text[]) as c (partition, position)
     on conflict (projection, source, partition)
        do update set version = excluded.version, position = excluded.position`,
    [p.name, sourceOf(p), engine, p.version, partitions, partitions.map((n) => at.get(n)!)],
  );
  await tx.query('update checkpoints set version = $3 where projection = $1 and source = $2', [
    p.name,
    sourceOf(p),
    p.version,
  ]);
}
