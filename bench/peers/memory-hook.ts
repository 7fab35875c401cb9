import { writeFileSync } from 'node:fs';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';

/** Loaded before a program by `--require`: on SIGUSR2 it collects garbage and writes what is left to a file. */
process.on('SIGUSR2', () => {
  setFlagsFromString('--expose-gc');
  const collect = runInNewContext('gc') as () => void;
  collect();
  collect();
  const { rss, heapUsed, external } = process.memoryUsage();
  writeFileSync(process.env.BENCH_MEMORY_FILE!, JSON.stringify({ rss, used: heapUsed + external }));
});
