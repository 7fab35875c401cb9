import { spawnSync } from 'node:child_process';
import { existsSync } from 'node:fs';
import { join } from 'node:path';

const SCRIPT = join(__dirname, '../../scripts/run-folder.mjs');

/** A run of tests that does `work` with its folder; the last line it prints is the folder. */
function run(work: string) {
  const code = `
    import { writeFileSync } from 'node:fs';
    import { openRunFolder } from ${JSON.stringify(SCRIPT)};
    const run = openRunFolder();
    const folder = run.env.TMPDIR;
    ${work}
    console.log(folder);
    process.exit(run.close() ? 0 : 1);`;
  const { status, stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', code], {
    encoding: 'utf8',
  });
  return { status, stderr, folder: stdout.trim() };
}

test('a run that leaves something behind is told what, and fails; its folder is gone either way', () => {
  const clean = run('');
  expect(clean).toMatchObject({ status: 0, stderr: '' });
  expect(existsSync(clean.folder)).toBe(false);
  const littered = run(`writeFileSync(folder + '/lumio-left-2', ''); writeFileSync(folder + '/lumio-left-1', '');`);
  expect(littered).toMatchObject({
    status: 1,
    stderr: `lumio: the tests left behind in ${littered.folder}: lumio-left-1, lumio-left-2\n`,
  });
  expect(existsSync(littered.folder)).toBe(false);
});
