import { Readable } from 'node:stream';
import { durationOf, peaksOf } from '../../services/studio/audio-pool';
import { wav, wavFile } from './audio-files';

/** Reads files by threads of audio, and prints what became of them. */
const store = (content: () => AsyncIterable<Uint8Array>) => ({ get: async () => Readable.from(content()) });
const nameOf = ({ name }: Error): string => name;

async function* whole() {
  yield wav([0.5]);
}
/** Keeps a thread busy, which asks for nothing meanwhile. */
async function* busy() {
  yield wavFile(Buffer.alloc(64 * 1024 * 1024), 2);
}
async function* stalled() {
  yield wav([0.5]).subarray(0, 44);
  await new Promise(() => undefined);
}

async function main(): Promise<void> {
  const peaks = (content: () => AsyncIterable<Uint8Array>, thread_ms: number, store_ms = 60_000) =>
    peaksOf(store(content), 'k', 'audio/wav', { thread_ms, store_ms });
  const after_it = () => peaks(whole, 60_000);
  console.log(
    JSON.stringify({
      // Its first file shows that threads can be started at all.
      hung: (await after_it()) && (await peaks(busy, 200)),
      after_it: await after_it(),
      // Time of the store does not count as the thread's, which is shorter here.
      stalled: await peaks(stalled, 60_000, 100).catch(nameOf),
      silent: await peaksOf({ get: () => new Promise(() => undefined) }, 'k', 'audio/wav', {
        ...{ thread_ms: 60_000, store_ms: 10 },
      }).catch(nameOf),
      length: await durationOf(store(whole), 'k', 'audio/wav'),
      is_missing: await peaksOf({ get: async () => undefined }, 'k', 'audio/wav'),
    }),
  );
  process.exit();
}

void main();
