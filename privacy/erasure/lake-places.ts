import type { Database } from '../../engines/postgres/port';
import type { Place } from '../../maintenance/archive/subject-index';

/**
 * Marks the files of the lake that hold records of these places in clear, to be written again without the person. No
 * process has the person's keys in memory by the time of the writing.
 */
export async function markLake(db: Database, engine: string, topic: string, places: readonly Place[]): Promise<void> {
  if (places.length === 0) return;
  const values = [
    ...[engine, topic, places.map(({ partition }) => partition)],
    ...[places.map(({ from }) => from), places.map(({ to }) => to)],
  ];
  const of = `unnest($3::integer[], $4::bigint[], $5::bigint[]) p (partition, first, next)
    on p.partition = f.partition and p.first < f.to_offset and p.next > f.from_offset
    where f.engine = $1 and f.topic = $2 and f.persons = 'clear'`;
  await db.transaction(async (tx) => {
    const marked = await tx.query(
      `update lake_files l set version = l.version + 1, rewrite_at = now() + interval '1 minute'
       where (l.engine, l.topic, l.partition, l.day) in (
         select f.engine, f.topic, f.partition, f.day from lake_files f join ${of})
       returning 1 as one`,
      values,
    );
    if (marked.length === 0) return;
    await tx.query(
      `insert into lake_erasures (engine, topic, partition, from_offset, to_offset)
       select distinct f.engine, f.topic, p.partition, p.first, p.next from lake_files f join ${of}
       on conflict do nothing`,
      values,
    );
  });
}
