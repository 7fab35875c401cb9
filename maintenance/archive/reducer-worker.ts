import { parentPort, workerData } from 'node:worker_threads';
import type { ReducerAnswer } from './reducer';

interface ReducerModule {
  reduce?: (state: unknown, record: unknown) => unknown;
  initial?: unknown;
}

/** Thread that runs one reducer; see `reduceRecords`. */
const { module: address, state: stored } = workerData as { module: string; state: string | null };
const send = (answer: ReducerAnswer): void => parentPort!.postMessage(answer);
const shown = (state: unknown): string => JSON.stringify(state) ?? 'null';
const fail = (error: unknown): void => send({ failed: error instanceof Error ? error.message : String(error) });

async function run(): Promise<void> {
  const { reduce, initial } = (await import(address)) as ReducerModule;
  if (typeof reduce !== 'function') throw new Error('the module exports no function reduce(state, record)');
  let state: unknown = stored === null ? initial : JSON.parse(stored);
  const reduceAll = async (records: readonly string[]): Promise<void> => {
    for (const record of records) state = await reduce(state, JSON.parse(record));
    send({ state: shown(state) });
  };
  parentPort!.on('message', (records: readonly string[]) => void reduceAll(records).catch(fail));
  send({ state: shown(state) });
}

run().catch(fail);
