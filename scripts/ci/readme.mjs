// Runs the shell blocks of README.md's "A webhook, all the way", word for word, in a folder of their own against a
// server that was just started.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';
import { startLumio, waitFor } from './running.mjs';

const SECTION = 'A webhook, all the way';
const PLATFORMS = ['kick', 'shopify', 'trovo', 'youtube'];
const QUERIES = 2;

install({ dev: false });
await build();
const [variables, watch, post, ask] = blocksOf(SECTION);
const folder = mkdtempSync(join(tmpdir(), 'lumio-readme-'));
// A checkout has its packages beside it; the watcher's `require('ws')` looks there.
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
const server = await startLumio(folder);
let watcher;
try {
  watcher = shell(variables + watch);
  await waitFor('the watcher to be subscribed', () => messages(watcher).some(({ type }) => type === 'subscribed'));

  const posting = shell(variables + post);
  expect('the webhooks end with 0', await posting.ended, 0);
  const accepted = posting.output().match(/"success":\s*true/g) ?? [];
  expect(`four webhooks answer success (they answered: ${posting.output()})`, accepted.length, PLATFORMS.length);

  const live = () => messages(watcher).filter(({ type }) => type === 'event');
  await waitFor(
    'all four on the socket',
    () => live().length >= PLATFORMS.length,
    () => watcher.output(),
  );
  expect('the socket shows each platform once', platformsOf(live().map(({ data }) => data)), PLATFORMS);

  const asking = shell(variables + ask);
  expect('the queries end with 0', await asking.ended, 0);
  const answers = jsonTexts(asking.output());
  expect(`two answers (${asking.output()})`, answers.length, QUERIES);
  expect('REST shows them', platformsOf(answers[0].data), PLATFORMS);
  expect('GraphQL shows them', platformsOf(answers[1].data.events.items), PLATFORMS);
  expect('GraphQL counts them', answers[1].data.events.total, PLATFORMS.length);
  console.log('README: four webhooks posted, seen live, and found in both query APIs');
} finally {
  watcher?.end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** The `sh` blocks below this heading. */
function blocksOf(heading) {
  const text = readFileSync(join(root, 'README.md'), 'utf8').split(`\n## ${heading}\n`)[1]?.split('\n## ')[0];
  const blocks = [...(text ?? '').matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]);
  if (blocks.length !== 4) throw new Error(`README.md, "${heading}": ${blocks.length} sh blocks, 4 are expected`);
  return blocks;
}

/** A terminal of the reader, in its own process group so that nothing of it stays behind. */
function shell(text) {
  const child = spawn('bash', ['-c', text], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'], detached: true });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => process.stderr.write(chunk));
  const ended = new Promise((done) => child.once('close', done));
  return {
    output: () => output,
    ended,
    end: () => child.exitCode === null && child.signalCode === null && process.kill(-child.pid),
  };
}

function messages(terminal) {
  const whole = terminal.output().split('\n').slice(0, -1);
  return whole.map((line) => JSON.parse(line));
}

function platformsOf(events) {
  return events.map(({ platform }) => platform).sort();
}

/** curl prints one answer behind the other, with no newline between. */
function jsonTexts(text) {
  return text
    .replaceAll(/\}\s*\{"data"/g, '}\n{"data"')
    .split('\n')
    .filter(Boolean)
    .map((part) => JSON.parse(part));
}

function expect(what, found, wanted) {
  if (JSON.stringify(found) === JSON.stringify(wanted)) return;
  throw new Error(`README.md: ${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}
