import { readFile, rename, writeFile } from 'node:fs/promises';
import { join, resolve } from 'node:path';
import { pathToFileURL } from 'node:url';
import { Worker } from 'node:worker_threads';
import { z } from 'zod';

/** Record as a reducer gets it: JSON text. */
export interface ReducedRecord {
  /** The partition of a topic; `events` for domain events. */
  source: string;
  /** Place in the source, from which a checkpoint continues. */
  place: number;
  json: string;
}

export interface Reduction {
  /** Module that exports `reduce(state, record)`, and may export `initial`. */
  file: string;
  /** State and places are stored here after each batch, and read at the begin. */
  checkpoint?: string | undefined;
  /** Default 10 s for a batch. */
  batch_ms?: number;
}

/** Message of the thread to this process. */
export type ReducerAnswer = { state: string } | { failed: string };

const BATCH_MS = 10_000;
const MEMORY_MIB = 512;
const Checkpoint = z.object({ places: z.record(z.string(), z.int()), state: z.string() });
type Checkpoint = z.output<typeof Checkpoint>;

/**
 * Runs a reducer over records in a thread without environment, and returns the last state as JSON. A reducer that
 * throws, exceeds 512 MiB or takes too long for a batch fails; its checkpoint keeps the last whole batch.
 */
export async function reduceRecords(batches: AsyncIterable<ReducedRecord[]>, reduction: Reduction): Promise<string> {
  const { file, checkpoint, batch_ms = BATCH_MS } = reduction;
  const done = checkpoint === undefined ? null : await readCheckpoint(checkpoint);
  const places = new Map(Object.entries(done?.places ?? {}));
  const thread = new ReducerThread(file, done?.state ?? null, batch_ms);
  try {
    let state = await thread.begin();
    for await (const batch of batches) {
      const fresh = batch.filter(({ source, place }) => place >= (places.get(source) ?? 0));
      if (fresh.length === 0) continue;
      state = await thread.reduce(fresh.map(({ json }) => json));
      for (const { source, place } of fresh) places.set(source, place + 1);
      if (checkpoint !== undefined) await writeCheckpoint(checkpoint, { places: Object.fromEntries(places), state });
    }
    return state;
  } finally {
    await thread.end();
  }
}

async function readCheckpoint(path: string): Promise<Checkpoint | null> {
  let text: string;
  try {
    text = await readFile(path, 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  return Checkpoint.parse(JSON.parse(text));
}

/** Replaces the file at once, so that a killed process leaves the one before or this one. */
async function writeCheckpoint(path: string, checkpoint: Checkpoint): Promise<void> {
  await writeFile(`${path}.new`, JSON.stringify(checkpoint), { mode: 0o600 });
  await rename(`${path}.new`, path);
}

/** Thread of one reducer; it answers one request at a time. */
class ReducerThread {
  private readonly worker: Worker;

  constructor(
    file: string,
    state: string | null,
    private readonly batch_ms: number,
  ) {
    this.worker = new Worker(join(__dirname, 'reducer-worker.js'), {
      workerData: { module: pathToFileURL(resolve(file)).href, state },
      env: {},
      argv: [],
      execArgv: [],
      resourceLimits: { maxOldGenerationSizeMb: MEMORY_MIB },
    });
  }

  /** Loads the module; returns the first state. */
  begin(): Promise<string> {
    return this.answer();
  }

  reduce(records: readonly string[]): Promise<string> {
    const answer = this.answer();
    this.worker.postMessage(records);
    return answer;
  }

  async end(): Promise<void> {
    await this.worker.terminate();
  }

  private answer(): Promise<string> {
    const { worker, batch_ms } = this;
    return new Promise<string>((resolve_state, reject) => {
      const settle = (action: () => void) => {
        clearTimeout(timer);
        worker.off('message', onMessage).off('error', onError).off('exit', onExit);
        action();
      };
      const fail = (message: string) => settle(() => reject(new Error(message)));
      const onMessage = (answer: ReducerAnswer) =>
        'state' in answer ? settle(() => resolve_state(answer.state)) : fail(`the reducer failed: ${answer.failed}`);
      const onError = (error: Error) => fail(`the reducer failed: ${error.message}`);
      const onExit = (code: number) => fail(`the reducer's thread ended with ${code}`);
      const timer = setTimeout(() => fail(`the reducer took more than ${batch_ms} ms for a batch`), batch_ms);
      worker.on('message', onMessage).on('error', onError).on('exit', onExit);
    });
  }
}
