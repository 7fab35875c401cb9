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

test('a host of their own serves them alone, and the site of the users may frame them', async () => {
  await server.dispose();
  const hosts = { LUMIO_HOSTS__OVERLAY: 'https://live.example', LUMIO_HOSTS__WEB: 'https://app.example' };
  server = await startServer({ env: hosts });
  const { port } = new URL(server.base_url);
  expect((await fetch(`http://127.0.0.1:${port}/overlay/abcdefghijkl`)).status).toBe(404);
});
