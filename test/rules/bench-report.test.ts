import { execFileSync } from 'node:child_process';
import { mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

const ROOT = join(__dirname, '../..');
const read = (...path: string[]) => readFileSync(join(ROOT, ...path), 'utf8');

describe('bench/RESULTS.md', () => {
  test('is what the result files hold', () => {
    const folder = mkdtempSync(join(tmpdir(), 'lumio-bench-report-'));
    try {
      const file = join(folder, 'RESULTS.md');
      const script = `import(process.argv[1]).then(({ writeReport }) => writeReport(process.argv[2], process.argv[3]))`;
      const args = [join(ROOT, 'scripts/bench-report.mjs'), join(ROOT, 'bench/results'), file];
      execFileSync(process.execPath, ['-e', script, ...args]);
      expect(readFileSync(file, 'utf8')).toBe(read('bench/RESULTS.md'));
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });

  test('can hold every track: each is named where a missing one fails the run', () => {
    const named = read('scripts/bench.mjs');
    const tracks = readdirSync(join(ROOT, 'bench/tracks')).map((file) => file.replace(/\.ts$/, ''));
    expect(tracks.length).toBeGreaterThan(10);
    expect(tracks.filter((track) => !named.includes(`  '${track}',`))).toEqual([]);
  });
});
