import { Presets, SingleBar } from 'cli-progress';

/** A progress bar on stderr for what takes longer than a second. */
export interface Bar {
  update(done: number, total: number, what?: string): void;
  stop(): void;
}

/** Shows nothing on what is no terminal, and nothing within the first second: most runs are over by then. */
export function progressBar(format: string): Bar {
  const bar = new SingleBar(
    { format, hideCursor: true, clearOnComplete: true, stream: process.stderr },
    Presets.shades_classic,
  );
  const started = Date.now();
  let shown = false;
  return {
    update(done, total, what = '') {
      if (!shown) {
        if (Date.now() - started < 1000) return;
        bar.start(total, done, { what });
        shown = true;
      }
      bar.setTotal(Math.max(total, done));
      bar.update(done, { what });
    },
    stop() {
      if (shown) bar.stop();
    },
  };
}

/** Bytes as a person reads them. */
export function bytes(count: number): string {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  let size = count;
  while (size >= 1024 && unit < units.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${unit === 0 ? size : size.toFixed(1)} ${units[unit]}`;
}
