// Opens overlays, the live page, Swagger UI and GraphiQL of a freshly started server in a real browser, uses them, and
// verifies that they request nothing from other hosts. With LUMIO_SCREENSHOTS it writes a picture of each into that
// folder.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { build, install } from '../prepare.mjs';
import { livePage, pastedToken } from './live-page.mjs';
import { madeOverlay, overlayPage } from './overlay-page.mjs';
import { startLumio } from './running.mjs';

const BROWSER = '/usr/bin/chromium';
const QUIET = [
  'background-networking',
  'component-update',
  'sync',
  'default-apps',
  'extensions',
  'dev-shm-usage',
  'gpu',
];
const PATIENCE_MS = 120_000;

install({ dev: true });
await build();
if (!existsSync(BROWSER)) {
  apt('update');
  apt('install', '-y', '--no-install-recommends', 'chromium');
}
const { chromium } = await import('playwright-core');
const folder = mkdtempSync(join(tmpdir(), 'lumio-browser-'));
const server = await startLumio(folder);
let browser;
try {
  const credentials = JSON.parse(readFileSync(join(folder, '.lumio/dev-credentials.json'), 'utf8'));
  browser = await chromium.launch({
    executablePath: BROWSER,
    args: ['--no-sandbox', '--no-first-run', ...QUIET.map((name) => `--disable-${name}`)],
    timeout: PATIENCE_MS,
  });
  // The page renders only the operations in sight: this address scrolls to the tested one.
  await visit('/v1/swagger-ui/#/events/emitEvent', swagger);
  await visit('/v1/graphiql', (page) => graphiql(page, credentials));
  const printed = /live page at (\S+)/.exec(server.output())[1];
  await visit(printed.slice(server.base_url.length), (page) => livePage(page, credentials), { colorScheme: 'light' });
  const phone = { width: 375, height: 700 };
  await visit('/', (page) => pastedToken(page, credentials), { colorScheme: 'dark', viewport: phone, refusals: [401] });
  const overlay = await madeOverlay(credentials);
  await visit(overlay.path, overlayPage(credentials, overlay), { refusals: [401] });
  console.log('browser: overlays, the live page, Swagger UI and GraphiQL work, and ask only this server');
} finally {
  await browser?.close();
  await server.stop();
  rmSync(folder, { recursive: true, force: true });
}

function apt(...args) {
  const { status } = spawnSync('apt-get', ['-q', ...args], {
    stdio: ['ignore', 'ignore', 'inherit'],
    env: { ...process.env, DEBIAN_FRONTEND: 'noninteractive' },
  });
  if (status !== 0) throw new Error(`apt-get ${args.join(' ')} failed (code ${status}); the check needs ${BROWSER}`);
}

/**
 * Opens the page and uses it; fails with all problems of the page: timeouts, errors of the console, failed and foreign
 * requests. Answers with the statuses in `refusals` are expected.
 */
async function visit(path, use, { refusals = [], ...options } = {}) {
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 }, ...options });
  page.setDefaultTimeout(PATIENCE_MS);
  const problems = [];
  page.on(
    'console',
    (message) =>
      message.type() === 'error' && !expected({ text: message.text() }) && problems.push(`console: ${message.text()}`),
  );
  const expected = ({ status, text = '' }) =>
    refusals.some(
      (one) =>
        one === status ||
        text.includes(`status of ${one}`) ||
        (one === 401 && text.includes('HTTP Authentication failed')),
    );
  page.on('pageerror', (error) => problems.push(`error: ${error.message}`));
  page.on(
    'response',
    (response) =>
      response.status() >= 400 &&
      !expected({ status: response.status() }) &&
      problems.push(`${response.status()} ${response.url()}`),
  );
  page.on('requestfailed', (request) => problems.push(`failed: ${request.url()} ${request.failure()?.errorText}`));
  page.on('request', (request) => {
    const url = new URL(request.url());
    const own = url.host === new URL(server.base_url).host || url.protocol === 'data:' || url.protocol === 'blob:';
    if (!own) problems.push(`foreign: ${request.url()}`);
  });
  try {
    await page.goto(server.base_url + path, { waitUntil: 'networkidle' });
    await use(page);
  } catch (error) {
    problems.push(error.message);
  }
  const { LUMIO_SCREENSHOTS: shots } = process.env;
  if (shots) await page.screenshot({ path: join(shots, `${path.split('/')[2] ?? `live-${options.colorScheme}`}.png`) });
  if (problems.length > 0) throw new Error(`${path}:\n${problems.join('\n')}`);
  await page.close();
}

async function swagger(page) {
  const operation = page.locator('.opblock', { hasText: '/v1/events/emit' }).first();
  await operation.waitFor();
  await operation.locator('.opblock-body').getByText('events:create').first().waitFor();
}

async function graphiql(page, { access_token }) {
  await page.locator('.graphiql-query-editor .monaco-editor, .graphiql-query-editor .CodeMirror').first().waitFor();
  await write(page, '.graphiql-query-editor', '{ __typename events { total } }');
  await page.getByRole('button', { name: 'Headers' }).click();
  await write(
    page,
    '.graphiql-editor-tool .graphiql-editor:not(.hidden)',
    JSON.stringify({ authorization: `Bearer ${access_token}` }),
  );
  await page.locator('.graphiql-execute-button').click();
  await page.locator('.graphiql-response').getByText('"total"').first().waitFor();
}

/** Replaces the editor's content; deletes the closing brackets that the editor adds after the cursor. */
async function write(page, editor, text) {
  await page.locator(editor).first().click();
  await page.keyboard.press('ControlOrMeta+A');
  await page.keyboard.insertText(text);
  await page.keyboard.press('ControlOrMeta+Shift+End');
  await page.keyboard.press('Delete');
}
