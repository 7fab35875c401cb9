import { writeFileSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';
import { getHeapSpaceStatistics, setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Number of collections, because V8 releases pages concurrently, some of them only with the next collection. */
const COLLECTIONS = 3;
const GIVEN_BACK_MS = Number(process.env.BENCH_GIVEN_BACK_MS);

/** Loaded before a program by `--require`: on SIGUSR2 it collects garbage and writes the remaining memory to a file. */
process.on('SIGUSR2', () => void report());

async function report(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  for (let times = 0; times < COLLECTIONS; times += 1) {
    collect();
    await sleep(GIVEN_BACK_MS);
  }
  collect();
  const { heapUsed, external } = process.memoryUsage();
  await sleep(GIVEN_BACK_MS);
  // Space for new objects: up to 32 MB, depending on allocation bursts and not on connections.
  const young = getHeapSpaceStatistics().find(({ space_name }) => space_name === 'new_space')!.physical_space_size;
  const rss = process.memoryUsage.rss() - young;
  writeFileSync(process.env.BENCH_MEMORY_FILE!, JSON.stringify({ rss, used: heapUsed + external }));
}
