import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { Tinypool } from 'tinypool';
import type { Blobs } from '../../engines/blobs/port';
import { Slots, TooManyWait } from '../../lib/async/slots';
import type { AudioTask } from './audio-worker';

/** Time that reading a file's headers may take. */
const HEADERS_MS = 5_000;
/** Time that decoding a file may take; of a longer one there is no waveform. */
const DECODE_MS = 10_000;

/**
 * Length of the audio in milliseconds; null where its headers do not have it, cannot be read in time, or too many files
 * wait.
 */
export async function durationOf(blobs: Pick<Blobs, 'get'>, key: string, content_type: string): Promise<number | null> {
  try {
    return await read<number>(blobs, key, { content_type, reads: 'duration' }, HEADERS_MS);
  } catch (error) {
    if (error instanceof TooManyWait) return null;
    throw error;
  }
}

/**
 * Peaks of the audio; null where it cannot be decoded, or not in time.
 * @throws TooManyWait when too many files wait
 */
export const peaksOf = (blobs: Pick<Blobs, 'get'>, key: string, content_type: string): Promise<number[] | null> =>
  read<number[]>(blobs, key, { content_type, reads: 'peaks' }, DECODE_MS);

const THREADS = 2;
/** Files are read in turn; the deadline of one begins with its turn. */
const slots = new Slots(THREADS, 100);
let pool: Tinypool | undefined;

/** Threads, which end when they are idle for a minute. */
async function threads(): Promise<Tinypool> {
  const { Tinypool } = await import('tinypool');
  pool ??= new Tinypool({
    filename: join(__dirname, 'audio-worker.js'),
    ...{ minThreads: 0, maxThreads: THREADS, idleTimeout: 60_000 },
    env: {},
    resourceLimits: { maxOldGenerationSizeMb: 128 },
  });
  return pool;
}

/**
 * Reads a blob in the thread. The deadline ends the thread: a damaged file may keep it busy for ever.
 * @throws Error when the blob cannot be read, TooManyWait when too many files wait
 */
function read<Made>(
  blobs: Pick<Blobs, 'get'>,
  key: string,
  task: Omit<AudioTask, 'port'>,
  deadline_ms: number,
): Promise<Made | null> {
  return slots.use(() => readNow<Made>(blobs, key, task, deadline_ms));
}

async function readNow<Made>(
  blobs: Pick<Blobs, 'get'>,
  key: string,
  task: Omit<AudioTask, 'port'>,
  deadline_ms: number,
): Promise<Made | null> {
  const audio = await blobs.get(key);
  if (audio === undefined) return null;
  const chunks = audio[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>;
  const { port1: here, port2: port } = new MessageChannel();
  let failure: { error: unknown } | null = null;
  here.on('message', () => {
    chunks.next().then(
      ({ done, value }) => here.postMessage(done ? null : value),
      (error: unknown) => {
        failure = { error };
        here.postMessage(null);
      },
    );
  });
  const signal = AbortSignal.timeout(deadline_ms);
  try {
    const made = (await (await threads()).run({ ...task, port }, { signal, transferList: [port] })) as Made | null;
    if (failure !== null) throw (failure as { error: unknown }).error;
    return made;
  } catch (error) {
    if (signal.aborted || (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY') return null;
    throw error;
  } finally {
    here.close();
    audio.destroy();
  }
}
