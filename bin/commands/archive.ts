import type { Command } from 'commander';
import { archiverOf } from '../archiving';
import { runCommand, type Connect, type FullContext } from './context';
import { progressBar } from './progress';

/** `lumio archive`: one pass of the archiver now, under the settings `archive.*`. */
export function register(program: Command, connect: Connect<FullContext>): void {
  program
    .command('archive')
    .description(
      'move records older than archive.after into the blob store now; archive.trim says whether they leave the topics',
    )
    .action(() =>
      runCommand(connect, async (context) => {
        const bar = progressBar('archive {bar} {value} records');
        let done = 0;
        try {
          const archiver = archiverOf(context.settings, context, context.log, context.metrics, (records) => {
            done += records;
            bar.update(done, done);
          });
          const { records, segments } = await archiver.run();
          bar.stop();
          process.stdout.write(`archived ${records} records in ${segments} segments\n`);
        } finally {
          bar.stop();
        }
      }),
    );
}
