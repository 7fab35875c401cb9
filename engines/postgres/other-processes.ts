import type { Queryable } from './port';

/**
 * Whether a process of Lumio besides this one is connected to the database: a server, or another command. Each process
 * has one wake-up link, and pools that are named after the command, or in a server by their purpose.
 * @param command name of this command, whose other sessions do not count
 */
export async function othersRun(db: Queryable, command: string): Promise<boolean> {
  const [row] = await db.query<{ others: boolean }>(
    `select count(*) filter (where application_name not in ('lumio wakeup link', $1)) > 0
       or count(*) filter (where application_name = 'lumio wakeup link') > 1 as others
     from pg_stat_activity
     where datname = current_database() and starts_with(application_name, 'lumio ')`,
    [`lumio ${command}`],
  );
  return row!.others;
}
