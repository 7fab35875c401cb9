import type { Queryable } from '../../engines/postgres/port';

/**
 * Makes the log's partitions of this month and of the next `months`, and moves rows that arrived before their month had
 * a partition. Call it at the start and once a day, from any number of processes; returns the number of new partitions.
 * Without it rows are stored in the default partition.
 */
export async function ensureEventLogPartitions(db: Queryable, months = 2): Promise<number> {
  for (let made = 0; ;) {
    const [row] = await db.query<{ made: number }>('select ensure_event_log_partitions($1) as made', [months]);
    if (row!.made === 0) return made;
    made += row!.made;
  }
}
