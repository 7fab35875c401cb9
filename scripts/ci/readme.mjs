// Runs the shell blocks of README.md and then those of docs/tutorial.md, word for word, in a folder of their own
// against one server that was just started.
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, symlinkSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install, root } from '../prepare.mjs';
import { startLumio, waitFor } from './running.mjs';

const README = 'README.md';
const TUTORIAL = 'docs/tutorial.md';
const PLATFORMS = ['kick', 'shopify', 'trovo', 'youtube'];
const QUERIES = 2;

install({ dev: false });
await build();
const [start, first] = blocksOf(README, 2);
const [variables, watch, post, ask, overlay] = blocksOf(TUTORIAL, 5);
expect('README.md begins with', start, 'npm start\n');
const folder = mkdtempSync(join(tmpdir(), 'lumio-readme-'));
// A checkout contains its packages, where the watcher's `require('ws')` searches.
symlinkSync(join(root, 'node_modules'), join(folder, 'node_modules'));
const server = await startLumio(folder);
let watcher;
try {
  const reading = shell(first);
  expect('README.md: the query ends with 0', await reading.ended, 0);
  const [{ data, ...rest }] = jsonTexts(reading.output());
  expect(`README.md: a new account has no events (${JSON.stringify(rest)})`, data, []);

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

  const making = shell(variables + overlay);
  expect('the overlay is made', await making.ended, 0);
  const address = new URL(making.output().trim());
  expect(`an address of an overlay (${address})`, /^#token=lm_overlay_[0-9a-f]{64}$/.test(address.hash), true);
  expect('its page', (await fetch(address)).status, 200);
  console.log(`${README}: server started and queried`);
  console.log(`${TUTORIAL}: four webhooks posted, seen live, and found in both query APIs; an overlay made`);
} finally {
  watcher?.end();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

/** Returns the `sh` blocks of a document, which has this number of them. */
function blocksOf(file, count) {
  const text = readFileSync(join(root, file), 'utf8');
  const blocks = [...text.matchAll(/^```sh\n([\s\S]*?)^```$/gm)].map((match) => match[1]);
  if (blocks.length !== count) throw new Error(`${file}: ${blocks.length} sh blocks, ${count} are expected`);
  return blocks;
}

/** Runs a terminal of the reader, in its own process group so that none of its processes survives. */
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

/** Splits answers: curl prints one after the other, without a newline between. */
function jsonTexts(text) {
  return text
    .replaceAll(/\}\s*\{"data"/g, '}\n{"data"')
    .split('\n')
    .filter(Boolean)
    .map((part) => JSON.parse(part));
}

function expect(what, found, wanted) {
  if (JSON.stringify(found) === JSON.stringify(wanted)) return;
  throw new Error(`${what}: ${JSON.stringify(found)} instead of ${JSON.stringify(wanted)}`);
}
