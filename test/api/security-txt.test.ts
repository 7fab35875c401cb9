import { serveDeclared } from '../support/declared-api';

const PATHS = ['/.well-known/security.txt', '/v1/.well-known/security.txt'];

test('where to tell of a weakness is said at both paths, to everybody, and in no description', async () => {
  const security = {
    contact: 'mailto:security@lumio.example, https://lumio.example/report',
    expires: '2027-01-01T00:00:00Z',
  };
  const api = await serveDeclared([], {}, {}, { security, public_url: 'https://api.lumio.example' });
  for (const path of PATHS) {
    const { status, headers, text } = await api.rest('GET', path);
    expect([status, headers.get('content-type')]).toEqual([200, 'text/plain; charset=utf-8']);
    expect(text.split('\n')).toEqual([
      'Contact: mailto:security@lumio.example',
      'Contact: https://lumio.example/report',
      'Expires: 2027-01-01T00:00:00Z',
      'Canonical: https://api.lumio.example/.well-known/security.txt',
      '',
    ]);
    expect((await api.rest('HEAD', path)).status).toBe(200);
    expect((await api.rest('POST', path)).status).toBe(405);
  }
  expect((await api.rest('GET', '/v1/openapi.json')).text).not.toContain('security.txt');
  await api.close();
});

test('in development it names this machine, and in production nothing while nobody set a contact', async () => {
  const development = await serveDeclared([], {}, {});
  for (const path of PATHS) {
    const { status, text } = await development.rest('GET', path);
    expect([status, text]).toEqual([
      200,
      expect.stringMatching(/^Contact: mailto:security@localhost\nExpires: 20\S+Z\n/),
    ]);
    expect(Date.parse(/^Expires: (.+)$/m.exec(text)![1]!)).toBeGreaterThan(Date.now());
  }
  await development.close();
  const production = await serveDeclared([], {}, {}, { env: 'production' });
  for (const path of PATHS) expect((await production.rest('GET', path)).status).toBe(404);
  await production.close();
});
