// The results of a test run: lines of JSON, one for each test file, benchmark or failure outside of them, in the file
// CI_RESULTS_FILE. Written by test/support/results-reporter.cjs, environment.cjs, global-teardown.ts and bench.mjs.
import { appendFileSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';

/** Opens the file of CI_RESULTS_FILE, or a temporary one; `read` returns the entries written since the call. */
export function openResults() {
  const shared = process.env.CI_RESULTS_FILE;
  const folder = shared ? undefined : mkdtempSync(join(tmpdir(), 'lumio-results-'));
  const file = shared ?? join(folder, 'results.jsonl');
  const lines = () => (existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : []);
  const before = lines().length;
  return {
    file,
    read: () =>
      lines()
        .slice(before)
        .map((line) => JSON.parse(line)),
    append: (entry) => appendFileSync(file, `${JSON.stringify({ stage: process.env.CI_STAGE ?? '', ...entry })}\n`),
    close: () => folder && rmSync(folder, { recursive: true, force: true }),
  };
}

/** The last entry of each test file, in the order of their first ones. */
export function lastOfEachSuite(entries) {
  const last = new Map();
  for (const entry of entries) if (entry.suite !== undefined) last.set(entry.suite, entry);
  return [...last.values()];
}
