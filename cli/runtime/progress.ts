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

/** A step that lasts longer is shown while it lasts. */
const LONG_STEP_MS = 2_000;

export interface StepProgress {
  update(progress: { done: number; total: number; what: string }): void;
  stop(): void;
}

/**
 * Shows the steps of work on stderr: a bar on a terminal, otherwise a line for each new step after the first second. A
 * step that lasts for {@link LONG_STEP_MS} is shown in every case.
 */
export function stepProgress(task: string): StepProgress {
  const bar = progressBar(`${task} {bar} {percentage}% | {value}/{total} | {what}`);
  const started = Date.now();
  let step = '';
  let printed = '';
  let long: NodeJS.Timeout | undefined;
  const print = () => {
    if (process.stderr.isTTY || step === printed) return;
    printed = step;
    process.stderr.write(`lumio: ${task}: ${step}\n`);
  };
  return {
    update({ done, total, what }) {
      bar.update(done, total, what);
      if (what !== step) {
        step = what;
        clearTimeout(long);
        long = setTimeout(() => {
          bar.update(done, total, what);
          print();
        }, LONG_STEP_MS).unref();
      }
      if (Date.now() - started >= 1000) print();
    },
    stop() {
      clearTimeout(long);
      bar.stop();
    },
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
