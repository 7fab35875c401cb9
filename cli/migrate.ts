import type { Command } from 'commander';
import { namingDatabase } from '../engines/postgres/url';
import { readSettings } from '../bin/read-settings';
import type { CliContext, Connect } from './runtime/context';

/** `lumio migrate`: migrates the schema to the newest step, as `start` does. */
export function register(program: Command, connect: Connect<CliContext>): void {
  program
    .command('migrate')
    .description('bring the database schema to the newest step')
    .action(async () => {
      const settings = readSettings();
      const { url } = settings.database;
      if (url === undefined) {
        // Opening the embedded database migrates it.
        await (await connect()).close();
        process.stdout.write('the schema is up to date\n');
        return;
      }
      const { migrate } = await import('../engines/postgres/migrate.js');
      const applied = await namingDatabase(settings, () => migrate(url));
      process.stdout.write(applied.length > 0 ? `applied: ${applied.join(', ')}\n` : 'the schema is up to date\n');
    });
}
