import { Presets, SingleBar } from 'cli-progress';
import { InvalidArgumentError, type Command } from 'commander';
import { rebuild } from '../projections/runtime/rebuild/rebuild';
import { runCommand, type CliContext, type Connect } from './runtime/context';

const positive = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number above 0.');
  return value;
};

interface RebuildFlags {
  all?: boolean;
  batch: number;
  older?: boolean;
  quiet?: boolean;
}

/** `lumio rebuild NAME`: replays a read model into shadow tables while the old ones serve, then swaps them. */
export function register(program: Command, connect: Connect): void {
  const restored = () => connect({ restored: true });
  program
    .command('rebuild')
    .argument('[name]', 'the projection: event-log, …')
    .description('rebuild a read model from its whole history while the old one serves, and swap it in')
    .option('--all', 'every read model, one after the other')
    .option('--batch <records>', 'records per write transaction', positive, 5000)
    .option('--older', 'after a rollback: replace the rows of a later version by those of this one')
    .option('--quiet', 'no progress bar')
    .action(async (name: string | undefined, flags: RebuildFlags, command: Command) => {
      if ((name === undefined) !== (flags.all === true))
        command.error('lumio: name one read model, or --all', { exitCode: 2 });
      await runCommand(restored, async (context) => {
        const abort = new AbortController();
        const cancel = () => abort.abort(new Error('interrupted; the live read model is as it was'));
        process.once('SIGINT', cancel);
        process.once('SIGTERM', cancel);
        const names = name === undefined ? withTables(context) : [name];
        try {
          for (const one of names) await rebuildOne(context, one, flags, abort.signal);
        } finally {
          process.off('SIGINT', cancel);
          process.off('SIGTERM', cancel);
        }
      });
    });
}

const withTables = ({ projections }: CliContext): string[] =>
  projections.filter(({ tables }) => tables.length > 0).map(({ name }) => name);

async function rebuildOne(context: CliContext, name: string, flags: RebuildFlags, signal: AbortSignal): Promise<void> {
  const bar = flags.quiet
    ? undefined
    : new SingleBar(
        {
          format: `${name} {bar} {percentage}% | {value}/{total} records | {eta_formatted} left`,
          noTTYOutput: false,
        },
        Presets.shades_classic,
      );
  bar?.start(0, 0);
  try {
    const result = await rebuild({
      ...context,
      db: context.build_db,
      name,
      batch_records: flags.batch,
      older: flags.older ?? false,
      signal,
      onProgress: ({ done, total }) => {
        bar?.setTotal(Math.max(done, total ?? done));
        bar?.update(done);
      },
    });
    bar?.stop();
    const parked = result.parked > 0 ? `, ${result.parked} parked as dead letters` : '';
    process.stdout.write(`${name}: ${result.records} records in ${result.seconds.toFixed(1)} s${parked}\n`);
  } finally {
    bar?.stop();
  }
}
