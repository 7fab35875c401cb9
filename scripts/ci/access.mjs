// Runs the shell blocks of docs/access.md, word for word and one after the other, against a server that was just
// started, and holds each answer against the block that follows it.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';
import { startLumio } from './running.mjs';

const FENCED = /^```(sh|json|text)\n([\s\S]*?)^```$/gm;
const END = '--- the end of a block';

install({ dev: false });
await build();
const blocks = [...readFileSync(join(root, 'docs/access.md'), 'utf8').matchAll(FENCED)];
const steps = blocks.flatMap(([, kind, command], index) => {
  const [, as, text] = blocks[index + 1] ?? [];
  return kind === 'sh' ? [{ command, answer: as === 'sh' || as === undefined ? null : { as, text } }] : [];
});
if (steps.filter(({ answer }) => answer).length < 10) throw new Error('docs/access.md has lost its examples');

const folder = mkdtempSync(join(tmpdir(), 'lumio-access-'));
const server = await startLumio(folder, { LUMIO_AUTH__DEVELOPMENT_LOGINS: 'true' });
try {
  const script = steps.map(({ command }) => `${command}\necho\necho '${END}'\n`).join('');
  const { status, stdout, stderr } = spawnSync('bash', ['-euo', 'pipefail', '-c', script], {
    cwd: folder,
    encoding: 'utf8',
  });
  if (status !== 0) throw new Error(`the examples end with ${status}: ${stdout}\n${stderr}`);
  const answers = stdout.split(`${END}\n`);
  steps.forEach(({ command, answer }, index) => {
    const found = answers[index].trim();
    if (answer !== null && !matches(answer, found))
      throw new Error(`docs/access.md shows\n${answer.text}but\n${command}answers\n${found}`);
  });
  console.log(`docs/access.md: ${steps.length} examples run, ${steps.filter(({ answer }) => answer).length} compared`);
} finally {
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

function matches({ as, text }, found) {
  return as === 'json' ? alike(JSON.parse(text), JSON.parse(found)) : fits(text.trim(), found);
}

/** `…` in a text stands for anything, as a whole text for any value, and at the end of a list for more. */
function alike(shown, found) {
  if (shown === '…') return found !== undefined;
  if (typeof shown === 'string') return typeof found === 'string' && fits(shown, found);
  if (Array.isArray(shown)) {
    const open = shown.at(-1) === '…';
    const listed = open ? shown.slice(0, -1) : shown;
    const counted = Array.isArray(found) && (open ? found.length > listed.length : found.length === listed.length);
    return counted && listed.every((one, index) => alike(one, found[index]));
  }
  if (typeof shown !== 'object' || shown === null) return shown === found;
  const same = JSON.stringify(Object.keys(shown).sort()) === JSON.stringify(Object.keys(found ?? {}).sort());
  return same && Object.entries(shown).every(([name, value]) => alike(value, found[name]));
}

function fits(shown, found) {
  const pattern = shown
    .split('…')
    .map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, '\\$&'))
    .join('.*');
  return new RegExp(`^${pattern}$`).test(found);
}
