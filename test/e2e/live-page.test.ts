import { request } from 'node:http';
import { sharedServer, type SharedServer } from '../support/shared-server';
import { startServer } from '../support/server';
import { livePageAddress } from '../../api/documents/live-page';

let server: SharedServer;
beforeAll(async () => {
  server = await sharedServer();
});

/** Asks by the address, under a name of the asker's choice. */
function ask(path: string, host: string): Promise<{ status: number; type: string; csp: string; text: string }> {
  const { hostname, port } = new URL(server.base_url);
  return new Promise((done, fail) => {
    request({ hostname, port, path, headers: { host } }, (response) => {
      let text = '';
      response.on('data', (chunk: Buffer) => (text += chunk.toString()));
      response.on('end', () => {
        const { 'content-type': type = '', 'content-security-policy': csp = '' } = response.headers;
        done({ status: response.statusCode!, type, csp: String(csp), text });
      });
    })
      .on('error', fail)
      .end();
  });
}

test('it is one page, one script and one style, which name no other host and hold no credential', async () => {
  const answers = await Promise.all(['/', '/live.js', '/live.css'].map((path) => ask(path, 'localhost:7070')));
  expect(answers.map(({ status, type }) => [status, type])).toEqual([
    [200, 'text/html; charset=utf-8'],
    [200, 'text/javascript; charset=utf-8'],
    [200, 'text/css; charset=utf-8'],
  ]);
  for (const { text, csp } of answers) {
    expect(csp).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self';/);
    expect(csp).not.toMatch(/unsafe/);
    expect(text.match(/https?:\/\/(?!www\.w3\.org\/2000\/svg)[^"'`\s]*/g)).toBeNull();
    expect(text).not.toContain(server.credentials.access_token);
    expect(text.match(/lm_(eyJ|usr_|svc_|sys_|pop_)\w+/g)).toBeNull();
    expect(text.match(/ (style|onclick|onload)=/g)).toBeNull();
  }
});

test.each(['127.0.0.1', '127.1.2.3:80', 'LOCALHOST', '[::1]:7070'])('this machine calls itself %s', async (host) => {
  expect((await ask('/', host)).status).toBe(200);
});

test.each([
  'rebound.example',
  'localhost.rebound.example',
  '127.0.0.1.rebound.example:7070',
  '10.0.0.1',
  '127.0.0.1@x',
])('who comes as %s is not let near it', async (host) => {
  for (const path of ['/', '/live.js', '/live.css']) {
    const { status, text } = await ask(path, host);
    expect([path, status >= 400 && status < 500, text.includes('<html')]).toEqual([path, true, false]);
  }
  expect((await ask('/v1', '10.0.0.1')).status).toBe(200);
});

test('the start prints its address with a token that lets in, below the line that it is ready', async () => {
  const own = await startServer();
  try {
    const [ready, live] = own
      .output()
      .split('\n')
      .filter((line) => !line.startsWith('{'));
    expect(ready).toBe(`lumio ready at ${own.base_url}`);
    const { token, origin } = /live page at (?<origin>http:\S+)\/#token=(?<token>\S+)/.exec(live!)!.groups!;
    expect(origin).toBe(own.base_url);
    const answer = await fetch(`${own.base_url}/v1/users/me`, { headers: { authorization: `Bearer ${token}` } });
    const { data } = (await answer.json()) as { data: { active_account_id: string } };
    expect(data.active_account_id).toBe(own.credentials.account_id);
  } finally {
    await own.dispose();
  }
});

test('an address is told where the page answers: in development, on this machine, with REST and sockets at one place', () => {
  const place = { env: 'development' as const, roles: ['api' as const, 'realtime' as const] };
  const address = (base_url: string, given = {}) => livePageAddress(base_url, { ...place, ...given }, 'T');
  expect(address('http://0.0.0.0:70')).toBe('http://127.0.0.1:70/#token=T');
  expect(address('http://[::1]:70')).toBe('http://[::1]:70/#token=T');
  expect([
    address('http://10.0.0.1:70'),
    address('http://127.0.0.1:70', { env: 'production' }),
    address('http://127.0.0.1:70', { roles: ['api'] }),
  ]).toEqual([null, null, null]);
});
