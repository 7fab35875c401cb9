import knex, { type Knex } from 'knex';
import pg from 'pg';
import { MIGRATIONS, type Migration } from '../../migrations';

/** Any number; every starting process waits for the same one. */
const MIGRATION_LOCK = 7_070_001;

/**
 * Brings the database to the newest schema. Many processes may call it at once: one works, the others wait
 * (knex's own lock makes concurrent first starts fail). With `only`, no other steps than these: the schema that a backup was made of.
 * Returns the names of the steps applied now.
 */
export async function migrate(url: string, only?: readonly string[]): Promise<string[]> {
  const guard = new pg.Client({ connectionString: url, application_name: 'lumio migrate' });
  await guard.connect();
  try {
    await guard.query('select pg_advisory_lock($1)', [MIGRATION_LOCK]);
    const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 } });
    try {
      const [, applied] = (await db.migrate.latest({
        migrationSource: sourceOf(only),
        tableName: 'schema_migrations',
      })) as [number, string[]];
      return applied;
    } finally {
      await db.destroy();
    }
  } finally {
    await guard.end();
  }
}

const sourceOf = (only: readonly string[] | undefined): Knex.MigrationSource<Migration> => ({
  getMigrations: async () => MIGRATIONS.filter(({ name }) => !only || only.includes(name)),
  getMigrationName: (migration) => migration.name,
  getMigration: async (migration) => ({ up: migration.up, down: async () => undefined }),
});
