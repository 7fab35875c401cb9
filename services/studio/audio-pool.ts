import { join } from 'node:path';
import { MessageChannel } from 'node:worker_threads';
import type { Tinypool } from 'tinypool';
import type { Blobs } from '../../engines/blobs/port';
import { Slots, TooManyWait } from '../../lib/async/slots';
import { Stopwatch } from '../../lib/async/stopwatch';
import type { AudioTask } from './audio-worker';
import { StoreTooSlow, TimedBlob } from './timed-blob';

/** Time that a thread may take for a file's headers. */
const HEADERS_MS = 5_000;
/** Time that a thread may take to decode a file; of one that takes longer there is no waveform. */
const DECODE_MS = 10_000;
type Store = Pick<Blobs, 'get'>;
interface Times {
  thread_ms: number;
  /** Of the store; it does not count as the thread's. */
  store_ms?: number;
}

/**
 * Length of the audio in milliseconds; null where its headers do not have it, cannot be read in time, or too many files
 * wait.
 */
export async function durationOf(blobs: Store, key: string, content_type: string): Promise<number | null> {
  try {
    return await read<number>(blobs, key, { content_type, reads: 'duration' }, { thread_ms: HEADERS_MS });
  } catch (error) {
    if (error instanceof TooManyWait || error instanceof StoreTooSlow) return null;
    throw error;
  }
}

/**
 * Peaks of the audio; null where it cannot be decoded, or not in time.
 * @throws StoreTooSlow, TooManyWait when too many files wait
 */
export const peaksOf = (
  blobs: Store,
  key: string,
  content_type: string,
  times: Times = { thread_ms: DECODE_MS },
): Promise<number[] | null> => read<number[]>(blobs, key, { content_type, reads: 'peaks' }, times);

const THREADS = 2;
/** Files are read in turn; the times of one begin with its turn. */
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
 * Reads a blob in a thread. A thread whose time is over is ended: a damaged file may keep it busy for ever.
 * @throws Error when the blob cannot be read, StoreTooSlow, TooManyWait when too many files wait
 */
function read<Made>(blobs: Store, key: string, task: Omit<AudioTask, 'port'>, times: Times): Promise<Made | null> {
  return slots.use(() => readNow<Made>(blobs, key, task, times));
}

async function readNow<Made>(
  blobs: Store,
  key: string,
  task: Omit<AudioTask, 'port'>,
  { thread_ms, store_ms }: Times,
): Promise<Made | null> {
  const blob = new TimedBlob(blobs, key, store_ms);
  if (!(await blob.open())) return null;
  const { port1: here, port2: port } = new MessageChannel();
  const end = new AbortController();
  const thread = new Stopwatch(thread_ms, () => end.abort());
  let failure: { error: unknown } | null = null;
  here.on('message', () => {
    thread.pause();
    void blob
      .next()
      .catch((error: unknown) => {
        failure = { error };
        return null;
      })
      .then((chunk) => {
        thread.run();
        here.postMessage(chunk);
      });
  });
  thread.run();
  try {
    const made = (await (
      await threads()
    ).run({ ...task, port }, { signal: end.signal, transferList: [port] })) as Made | null;
    if (failure !== null) throw (failure as { error: unknown }).error;
    return made;
  } catch (error) {
    if (failure !== null) throw (failure as { error: unknown }).error;
    if (end.signal.aborted || (error as NodeJS.ErrnoException).code === 'ERR_WORKER_OUT_OF_MEMORY') return null;
    throw error;
  } finally {
    thread.stop();
    here.close();
    blob.close();
  }
}
