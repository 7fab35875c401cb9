import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import type { TrackOptions } from './harness';

/** Runs one track: `main.js <track> [--smoke]`. Exit code 1 when it failed or, in a full run, missed a floor. */
async function main(): Promise<void> {
  const [name = ''] = process.argv.slice(2);
  const tracks = readdirSync(join(__dirname, 'tracks')).flatMap((file) => /^([\w-]+)\.js$/.exec(file)?.[1] ?? []);
  if (!tracks.includes(name)) throw new Error(`no track "${name}"; there are: ${tracks.join(', ')}`);
  const { run } = (await import(join(__dirname, 'tracks', `${name}.js`))) as {
    run(options: TrackOptions): Promise<boolean>;
  };
  const met = await run({ smoke: process.argv.includes('--smoke') });
  process.exit(met ? 0 : 1);
}

main().catch((error: unknown) => {
  console.error(error);
  process.exit(1);
});
