import { execFileSync } from 'node:child_process';
import { join } from 'node:path';

const SCRIPT = join(__dirname, '../../scripts/second-look.mjs');

interface Entry {
  suite?: string;
  failed?: number;
  failures?: { title: string; message: string }[];
  died?: boolean;
  outside?: string;
}
const passed = (suite: string): Entry => ({ suite, failed: 0, failures: [], died: false });
const failed = (suite: string, died = false): Entry => {
  const failures = [{ title: 'a test', message: 'Error: expected 1' }];
  return { suite, failed: failures.length, failures, died };
};

/** The judgement of a failed run with these entries; each file's second run writes its entry in `again`. */
function judged(first: readonly Entry[], again: Record<string, Entry[]> = {}) {
  const script = `
    import { lookAgain } from ${JSON.stringify(SCRIPT)};
    const [entries, again] = JSON.parse(process.argv.at(-1));
    const ran = [];
    const runAlone = (file) => {
      ran.push(file);
      entries.push(...(again[file] ?? []));
      return (again[file] ?? []).every((entry) => entry.failed === 0) ? 0 : 1;
    };
    console.log(JSON.stringify({ ...lookAgain({ read: () => entries, runAlone }), ran }));`;
  const args = ['--input-type=module', '-e', script, JSON.stringify([first, again])];
  return JSON.parse(execFileSync(process.execPath, args, { encoding: 'utf8' }));
}

test('a file that passes alone is flaky, with its first failure', () => {
  const run = judged([passed('test/a.test.ts'), failed('test/b.test.ts')], {
    'test/b.test.ts': [passed('test/b.test.ts')],
  });
  expect(run).toEqual({
    flaky: [{ file: 'test/b.test.ts', failure: 'a test: Error: expected 1' }],
    ran: ['test/b.test.ts'],
  });
});

test('a file that fails twice is refused', () => {
  const run = judged([failed('test/a.test.ts'), failed('test/b.test.ts')], {
    'test/a.test.ts': [failed('test/a.test.ts')],
    'test/b.test.ts': [passed('test/b.test.ts')],
  });
  expect(run).toMatchObject({ refusal: 'failed twice: test/a.test.ts', flaky: [{ file: 'test/b.test.ts' }] });
});

test('three files get a second run, four do not', () => {
  const names = ['a', 'b', 'c', 'd'].map((name) => `test/${name}.test.ts`);
  const again = Object.fromEntries(names.map((name) => [name, [passed(name)]]));
  const run = (count: number) =>
    judged(
      names.slice(0, count).map((name) => failed(name)),
      again,
    );
  expect(run(3)).toMatchObject({ ran: names.slice(0, 3), flaky: [{}, {}, {}] });
  expect(run(3).refusal).toBeUndefined();
  expect(run(4)).toEqual({ flaky: [], ran: [], refusal: '4 test files failed; a second look is for at most 3' });
});

test.each<[string, Entry[], string]>([
  ['set-up', [], 'the run failed outside its test files'],
  [
    'teardown',
    [failed('test/a.test.ts'), { outside: 'the server logged errors' }],
    'outside of the test files: the server logged errors',
  ],
  ['a worker that died', [failed('test/a.test.ts', true)], 'the worker process of test/a.test.ts died'],
])('a failure of %s gets no second run', (_where, entries, refusal) => {
  expect(judged(entries, { 'test/a.test.ts': [passed('test/a.test.ts')] })).toEqual({ flaky: [], ran: [], refusal });
});

test('a failure outside of the test files in a second run is refused', () => {
  const again = { 'test/a.test.ts': [passed('test/a.test.ts'), { outside: 'the server logged errors' }] };
  expect(judged([failed('test/a.test.ts')], { ...again }).refusal).toBe(
    'outside of the test files: the server logged errors',
  );
});
