import { spawnSync } from 'node:child_process';
import { closeSync, mkdtempSync, openSync, rmSync, statfsSync, writeSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** A small disk of its own, in memory, that can be filled and relieved. Needs root, or sudo without a password. */
export interface SmallDisk {
  folder: string;
  /** Leaves this many bytes free. */
  fill(leave: number): void;
  relieve(): void;
  dispose(): void;
}

export function smallDisk(mebibytes: number): SmallDisk {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-faults-disk-'));
  privileged('mount', '-t', 'tmpfs', '-o', `size=${mebibytes}m,mode=0777`, 'tmpfs', folder);
  const ballast = join(folder, 'ballast');
  return {
    folder,
    fill(leave) {
      const file = openSync(ballast, 'w');
      const block = Buffer.alloc(64 * 1024);
      try {
        for (;;) {
          const { bavail, bsize } = statfsSync(folder);
          if (bavail * bsize <= leave + block.length) return;
          writeSync(file, block);
        }
      } finally {
        closeSync(file);
      }
    },
    relieve: () => rmSync(ballast, { force: true }),
    dispose() {
      privileged('umount', folder);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

function privileged(...command: string[]): void {
  const whole = process.getuid?.() === 0 ? command : ['sudo', '-n', ...command];
  const { status, stderr, error } = spawnSync(whole[0]!, whole.slice(1), { encoding: 'utf8' });
  if (status !== 0) throw new Error(`${whole.join(' ')}: ${error?.message ?? stderr}`);
}
