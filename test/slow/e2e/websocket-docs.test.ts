import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { PATIENCE_MS } from '../../support/patience';
import { sharedServer, type SharedServer } from '../../support/shared-server';

const ROOT = join(__dirname, '../../..');
const TSC = join(ROOT, 'node_modules/.bin/tsc');
const TYPES = join(ROOT, 'node_modules/@types');

/** The examples of the documents, run word for word beside a server, with the client as others install it. */
let server: SharedServer;
let folder: string;
beforeAll(async () => {
  server = await sharedServer();
  folder = mkdtempSync(join(tmpdir(), 'lumio-examples-'));
  mkdirSync(join(folder, 'node_modules/@lumio'), { recursive: true });
  symlinkSync(server.data_dir, join(folder, '.lumio'));
  symlinkSync(join(ROOT, 'node_modules/ws'), join(folder, 'node_modules/ws'));
  const target = join(folder, 'node_modules/@lumio/client');
  execFileSync(process.execPath, [join(ROOT, 'scripts/generate/client.mjs'), target], {
    stdio: ['ignore', 'ignore', 'inherit'],
  });
});
afterAll(() => rmSync(folder, { recursive: true, force: true }));

/** The blocks of a kind in a document, in their order. */
const blocks = (path: string, kind: string): string[] =>
  [...readFileSync(join(ROOT, path), 'utf8').matchAll(/^```(\w+)\n([\s\S]*?)^```$/gm)].flatMap(([, as, text]) =>
    as === kind ? [text!] : [],
  );

/** Runs a program as a module; what it printed, when it has ended by itself. */
async function run(text: string): Promise<{ code: number | null; output: string }> {
  writeFileSync(join(folder, 'example.mjs'), text);
  const child = spawn(process.execPath, ['example.mjs'], { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] });
  let output = '';
  child.stdout.on('data', (chunk) => (output += chunk));
  child.stderr.on('data', (chunk) => (output += chunk));
  const late = setTimeout(() => child.kill(), PATIENCE_MS);
  const code = await new Promise<number | null>((ended) => child.once('close', ended));
  clearTimeout(late);
  return { code, output };
}

test("the client's example shows an event and ends", async () => {
  const [example, ...others] = blocks('clients/js/README.md', 'js');
  expect(others).toEqual([]);
  const { code, output } = await run(example!);
  expect([code, output]).toEqual([0, expect.stringMatching(/^kick:follower after \d+ ms\n$/)]);
});

test('the example by hand comes back to what it missed', async () => {
  const [example, ...others] = blocks('docs/websocket.md', 'js');
  expect(others).toEqual([]);
  expect(await run(example!)).toEqual({ code: 0, output: blocks('docs/websocket.md', 'text')[0] });
});

test("the client is loaded by CommonJS too, and its README's messages are typed as shown", async () => {
  const loaded = await run(
    "import { createRequire } from 'node:module';\n" +
      "console.log(Object.keys(createRequire(import.meta.url)('@lumio/client')).sort().join());",
  );
  expect(loaded).toEqual({ code: 0, output: 'LumioClient,Refused,isEvent\n' });
  const shown = blocks('clients/js/README.md', 'ts');
  expect(shown).toHaveLength(2);
  const head = `import { isEvent, LumioClient } from '@lumio/client';
declare function cheer(bits: number): void;
const client = new LumioClient({ url: 'wss://api.example/v1/ws' });
declare const account_id: string;
declare function show(username: string, message: string): void;
declare function greyOut(person: string): void;
`;
  const mistake =
    '// @ts-expect-error -- there is no such channel\nclient.subscribe(`chats:${account_id}`, () => undefined);\n';
  writeFileSync(join(folder, 'chat.ts'), head + shown.join('') + mistake);
  const options = ['--noEmit', '--strict', '--module', 'node20', '--lib', 'es2022,dom', '--types', 'node'];
  const compiled = spawnSync(TSC, [...options, '--typeRoots', TYPES, 'chat.ts'], { cwd: folder, encoding: 'utf8' });
  expect([compiled.stdout, compiled.status]).toEqual(['', 0]);
});
