import type { Command } from 'commander';
import { type Archived, BACKUP_RUNS, TRIM_OFF } from '../maintenance/archive/archive';
import { archiverOf } from '../bin/upkeep/archiving';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar } from './runtime/progress';

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
          const archived = await archiver.run();
          bar.stop();
          process.stdout.write(`archived ${archived.records} records in ${archived.segments} segments\n`);
          for (const line of left(archived)) process.stdout.write(`${line}\n`);
        } finally {
          bar.stop();
        }
      }),
    );
}

/** Lines about the records that stay in the topics, one per reason. */
function left({ young, waiting, kept }: Archived): string[] {
  const lines = [];
  if (young > 0) lines.push(`left ${young} records: younger than archive.after`);
  if (waiting > 0) lines.push(`left ${waiting} records: too few for a segment; archived a day later at the latest`);
  for (const [why, records] of kept) {
    lines.push(`kept ${records} archived records in the topics as well: ${reasonOf(why)}`);
  }
  return lines;
}

function reasonOf(why: string): string {
  if (why === TRIM_OFF) return 'archive.trim is off';
  return why === BACKUP_RUNS ? why : `the projection ${why} has not applied them yet`;
}
