import { Presets, SingleBar } from 'cli-progress';

/** Progress bar on stderr for work of more than a second. */
export interface Bar {
  update(done: number, total: number, what?: string): void;
  stop(): void;
}

/** Shows nothing without a terminal, and nothing within the first second, in which most runs end. */
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

/**
 * Prints a line on stderr for each new step of work of more than a second, where no bar can be shown. Returns a
 * function to call with the step's name.
 */
export function progressLines(task: string): (step: string) => void {
  const started = Date.now();
  let last = '';
  return (step) => {
    if (process.stderr.isTTY || step === last || Date.now() - started < 1000) return;
    last = step;
    process.stderr.write(`lumio: ${task}: ${step}\n`);
  };
}

/** Formats bytes with a unit. */
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
