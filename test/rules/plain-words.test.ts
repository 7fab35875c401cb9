import { spawnSync } from 'node:child_process';
import { join } from 'node:path';

const RULE = join(__dirname, '../../scripts/lint/plain-words.mjs');

/** The advice for each text, in order; none for a plain one. */
function adviceFor(texts: readonly string[], where: { member?: boolean } = {}): string[][] {
  const script = `import { findings } from ${JSON.stringify(RULE)};
    const all = ${JSON.stringify(texts)}.map((text) => findings(text, ${JSON.stringify(where)}));
    console.log(JSON.stringify(all));`;
  const { stdout, stderr } = spawnSync(process.execPath, ['--input-type=module', '-e', script], { encoding: 'utf8' });
  if (stderr) throw new Error(stderr);
  return JSON.parse(stdout) as string[][];
}

test('each pattern of unclear English is found', () => {
  const unclear = [
    'Whose a grant is, and by which app it was given.',
    'There is none of them.',
    'The word that was told by the socket.',
    'A list for who reads it.',
    'At most so many rows.',
    'A row is looked up by its name.',
    'Built anew after a failure.',
    'A process beside this one.',
    'Rows of builds before this one.',
    'The living session of a user.',
    'The database is away for a moment.',
    'A name comes to an account.',
    'The tail goes on after a pause.',
  ];
  expect(adviceFor(unclear).map((found) => found.length)).toEqual(unclear.map(() => 1));
  expect(adviceFor(['It lives for a day.'], { member: true })).toEqual([['"It": name the thing']]);
});

test('plain sentences pass: persons speak, code spans and later sentences are not judged', () => {
  const plain = [
    'Claims the refresh lease of this grant, so that a dead process cannot keep it.',
    'A moderator said who may stay.',
    'Returns `told` as it is.',
    'Evicts expired entries on insert. What is left stays.',
    'So many entries that a list would be long.',
    'Whether the caller holds the permission.',
  ];
  expect(adviceFor(plain)).toEqual(plain.map(() => []));
  expect(adviceFor(['It stays where it is.'])).toEqual([[]]);
});
