import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { runDemo } from '../demo/stream';
import type { DemoCredentials } from '../demo/vendor-requests';

const number = (text: string): number => {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError('must be a number of 0 or more.');
  return value;
};

/** `lumio demo`: starts, and plays a lifelike stream into it through the front door until stopped. */
export function register(program: Command): void {
  program
    .command('demo')
    .description('start Lumio and play a lifelike stream into it until stopped')
    .option('--seed <number>', 'the same seed plays the same stream', number, 7)
    .option('--rate <happenings>', 'happenings a second on average', number, 2)
    .action(async ({ seed, rate }: { seed: number; rate: number }) => {
      const { serve } = await import('../bin/serve.js');
      const running = await serve();
      const path = join(running.data_dir, 'dev-credentials.json');
      const credentials = JSON.parse(readFileSync(path, 'utf8')) as DemoCredentials;
      const over = new AbortController();
      const playing = runDemo(credentials, { seed, rate, signal: over.signal });
      playing.catch((error: Error) => {
        process.stderr.write(`lumio: the demo stopped: ${error.message}\n`);
        running.stop();
      });
      const code = await running.ended;
      over.abort();
      await Promise.allSettled([playing]);
      process.exit(code);
    });
}
