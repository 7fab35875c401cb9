import { Presets, SingleBar } from 'cli-progress';
import { InvalidArgumentError, type Command } from 'commander';
import { rebuild } from '../projections/runtime/rebuild';
import { runCommand, type Connect } from './runtime/context';

const positive = (text: string): number => {
  const value = Number(text);
  if (!Number.isSafeInteger(value) || value < 1) throw new InvalidArgumentError('must be a whole number above 0.');
  return value;
};

/** `lumio rebuild NAME`: replays a read model into shadow tables while the old ones serve, then swaps. */
export function register(program: Command, connect: Connect): void {
  program
    .command('rebuild')
    .argument('<name>', 'the projection: event-log, …')
    .description('rebuild a read model from its whole history while the old one serves, and swap it in')
    .option('--batch <records>', 'records per write transaction', positive, 5000)
    .option('--quiet', 'no progress bar')
    .action(async (name: string, options: { batch: number; quiet?: boolean }) => {
      await runCommand(connect, async (context) => {
        const abort = new AbortController();
        const cancel = () => abort.abort(new Error('interrupted; the live read model is as it was'));
        process.once('SIGINT', cancel);
        process.once('SIGTERM', cancel);
        const bar = options.quiet
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
            name,
            batch_records: options.batch,
            signal: abort.signal,
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
          process.off('SIGINT', cancel);
          process.off('SIGTERM', cancel);
        }
      });
    });
}
