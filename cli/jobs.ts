import { InvalidArgumentError, Option, type Command } from 'commander';
import { JOB_STATES, type JobState, type StoredJob } from '../engines/jobs/port';
import { runCommand, type Connect, type FullContext } from './runtime/context';

const id = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be the id of a job.');
  return value;
};
const ids = (text: string, before: number[] = []): number[] => [...before, id(text)];

const line = (job: StoredJob): string =>
  [job.id, job.key, job.state, `${job.attempts}/${job.tries}`, job.run_at, firstLine(job.error)].join('\t');
const firstLine = (error: string | null): string => error?.split('\n', 1)[0]!.slice(0, 160) ?? '-';

/** `lumio jobs list|retry|drop`. */
export function register(program: Command, connect: Connect<FullContext>): void {
  const group = program.command('jobs').description('what waits, repeats or calls the outside');

  group
    .command('list')
    .description('list jobs, oldest first: id, key, state, tries, when it runs, last error')
    .addOption(new Option('--state <state>', 'only in this state').choices(JOB_STATES))
    .option('--job <name>', 'only of this name')
    .addOption(new Option('--limit <n>', 'at most so many').default(100).argParser(id))
    .option('--json', 'one JSON object a line')
    .action((options: { state?: JobState; job?: string; limit: number; json?: boolean }) =>
      runCommand(connect, async ({ jobs }) => {
        for (const job of await jobs.list({ ...options, name: options.job })) {
          process.stdout.write(`${options.json ? JSON.stringify(job) : line(job)}\n`);
        }
      }),
    );

  const settling = (name: 'retry' | 'drop', description: string, outcome: string) =>
    group
      .command(name)
      .argument('<ids...>', 'the jobs', ids)
      .description(description)
      .action((wanted: number[]) =>
        runCommand(connect, async ({ jobs }) => {
          const changed = await jobs[name](wanted);
          if (name === 'retry') jobs.wake();
          process.stdout.write(`${changed} of ${wanted.length} jobs ${outcome}\n`);
          if (changed === wanted.length) return 0;
          process.stderr.write('lumio: the others run, or are not there\n');
          return 1;
        }),
      );
  settling('retry', 'run failed, parked or waiting jobs now, with all their tries', 'will run now');
  settling('drop', 'delete jobs that do not run; what they had to do is not done', 'dropped');
}
