import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { InvalidArgumentError, type Command } from 'commander';
import { type AudienceCredentials, createAudience } from '../demo/audience';
import { type ConnectingCredentials, connectClouds, startClouds } from '../demo/clouds';
import { demoOverlay } from '../demo/overlay';
import type { Beat } from '../demo/story';
import { runDemo } from '../demo/stream';
import type { DemoCredentials } from '../demo/vendor-requests';

const number = (text: string): number => {
  const value = Number(text);
  if (!Number.isFinite(value) || value < 0) throw new InvalidArgumentError('must be a number of 0 or more.');
  return value;
};

/** `lumio demo`: starts Lumio and sends a lifelike stream through the front door until stopped. */
export function register(program: Command): void {
  program
    .command('demo')
    .description('start Lumio and play a lifelike stream into it until stopped')
    .option('--seed <number>', 'the same seed plays the same stream', number, 7)
    .option('--rate <happenings>', 'happenings a second on average', number, 2)
    .option('--vendors', 'through every adapter: the platforms are spoken with, on this machine', false)
    .action(async ({ seed, rate, vendors }: { seed: number; rate: number; vendors: boolean }) => {
      const { serve } = await import('../bin/serve.js');
      const clouds = vendors ? await startClouds() : null;
      Object.assign(process.env, clouds?.env());
      const running = await serve();
      const path = join(running.data_dir, 'dev-credentials.json');
      const credentials = JSON.parse(readFileSync(path, 'utf8')) as DemoCredentials &
        ConnectingCredentials &
        AudienceCredentials;
      if (clouds !== null) await connectClouds(clouds, credentials);
      process.stdout.write(`lumio: overlay at ${await demoOverlay(credentials, running.data_dir)}\n`);
      const over = new AbortController();
      const play = clouds === null ? createAudience(running.records, credentials) : (beat: Beat) => clouds.play(beat);
      const playing = runDemo(credentials, { seed, rate, signal: over.signal, play });
      playing.catch((error: Error) => {
        process.stderr.write(`lumio: the demo stopped: ${error.message}\n`);
        running.stop();
      });
      const code = await running.ended;
      over.abort();
      await Promise.allSettled([playing]);
      await clouds?.close();
      process.exit(code);
    });
}
