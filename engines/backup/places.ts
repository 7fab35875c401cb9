import type { Database, Queryable } from '../postgres/port';

/** Identity of a log in checkpoints and dead letters. */
export interface Source {
  engine: string;
  source: string;
  partition: number;
}

/**
 * Positions of a log in the database: those of checkpoints (next offset, last position; the end of a silent build) and
 * of dead letters (their own).
 */
export async function placesOf(db: Queryable, { engine, source, partition }: Source): Promise<string[]> {
  const rows = await db.query<{ position: string }>(
    `select position from checkpoints where engine = $1 and source = $2 and partition = $3
     union
     select silent_to from checkpoints
       where engine = $1 and source = $2 and partition = $3 and silent_to is not null
     union
     select d.position from dead_letters d join checkpoints c using (projection, source, partition)
       where c.engine = $1 and d.source = $2 and d.partition = $3`,
    [engine, source, partition],
  );
  return rows.map(({ position }) => position);
}

/**
 * Moves checkpoints and dead letters from one log to another that has the same records: `places` maps old positions to
 * new ones.
 */
export async function movePlaces(
  db: Database,
  from: Source,
  engine: string,
  places: ReadonlyMap<string, string>,
): Promise<void> {
  const { source, partition } = from;
  const values = [from.engine, source, partition, [...places.keys()], [...places.values()]];
  await db.transaction(async (tx) => {
    // Uses temporary positions that no record has, so that two letters do not collide.
    await tx.query(
      `update dead_letters d set position = '~' || p.now
       from checkpoints c, unnest($4::text[], $5::text[]) p (old, now)
       where (c.projection, c.source, c.partition) = (d.projection, d.source, d.partition) and c.engine = $1
         and d.source = $2 and d.partition = $3 and d.position = p.old`,
      values,
    );
    await tx.query(
      `update dead_letters set position = substr(position, 2) where source = $1 and partition = $2
         and position like '~%'`,
      [source, partition],
    );
    await tx.query(
      `update checkpoints c set silent_to = p.now from unnest($4::text[], $5::text[]) p (old, now)
       where c.engine = $1 and c.source = $2 and c.partition = $3 and c.silent_to = p.old`,
      values,
    );
    await tx.query(
      `update checkpoints c set position = p.now, engine = $6 from unnest($4::text[], $5::text[]) p (old, now)
       where c.engine = $1 and c.source = $2 and c.partition = $3 and c.position = p.old`,
      [...values, engine],
    );
  });
}
