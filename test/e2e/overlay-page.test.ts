import { get, type IncomingMessage } from 'node:http';
import { startServer, type TestServer } from '../support/server';

let server: TestServer;
afterAll(() => server?.dispose());

test('pages of overlays and widgets are served for any key, with a strict policy and nothing of others', async () => {
  server = await startServer();
  for (const path of ['/overlay/abcdefghijkl', '/widget/anything', '/overlay.js', '/overlay.css']) {
    const answer = await fetch(server.base_url + path);
    const text = await answer.text();
    expect([path, answer.status]).toEqual([path, 200]);
    const policy = answer.headers.get('content-security-policy')!;
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
    expect(policy).toMatch(/frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'$/);
    expect(policy).not.toMatch(/unsafe/);
    expect(answer.headers.get('x-content-type-options')).toBe('nosniff');
    expect(text).not.toContain(server.credentials.access_token);
    expect(text.match(/ (style|onclick|onload)=/g)).toBeNull();
  }
});

test('a custom layer has a frame of an opaque origin, which loads files of this installation alone', async () => {
  const { host } = new URL(server.base_url);
  const policyOf = async (path: string) => {
    const answer = await fetch(server.base_url + path);
    return [answer.status, answer.headers.get('content-security-policy')] as const;
  };
  const [, page] = await policyOf('/overlay/abcdefghijkl');
  expect(page).toContain(`; frame-src ${host}/overlay-frame;`);
  for (const path of ['/overlay-frame', '/overlay-frame.js', '/overlay-frame.css']) {
    const [status, policy] = await policyOf(path);
    expect([path, status]).toEqual([path, 200]);
    expect(policy!.split('; ')).toEqual([
      "default-src 'none'",
      `script-src ${host}/overlay-frame.js 'unsafe-eval'`,
      "style-src 'self' 'unsafe-inline'",
      "img-src 'self' data:",
      "media-src 'self' data:",
      "font-src 'self' data:",
      "base-uri 'none'",
      "form-action 'none'",
      "frame-ancestors 'self'",
      'sandbox allow-scripts',
    ]);
  }
});

test('a host that is none gets into no policy', async () => {
  const { port, hostname } = new URL(server.base_url);
  const answer = await new Promise<IncomingMessage>((resolve, reject) => {
    const headers = { host: `a;script-src *` };
    get({ host: hostname, port, path: '/overlay/abcdefghijkl', headers }, resolve).on('error', reject);
  });
  answer.resume();
  expect(answer.headers['content-security-policy'] ?? '').not.toContain('script-src *');
});

test('a host of their own serves them alone, and the site of the users may frame them', async () => {
  await server.dispose();
  const hosts = { LUMIO_HOSTS__OVERLAY: 'https://live.example', LUMIO_HOSTS__WEB: 'https://app.example' };
  server = await startServer({ env: hosts });
  const { port } = new URL(server.base_url);
  expect((await fetch(`http://127.0.0.1:${port}/overlay/abcdefghijkl`)).status).toBe(404);
});
