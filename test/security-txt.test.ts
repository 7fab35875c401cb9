import { serveDeclared } from './support/declared-api';

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

test('it is not there while nobody set a contact', async () => {
  const api = await serveDeclared([], {}, {});
  for (const path of PATHS) expect((await api.rest('GET', path)).status).toBe(404);
  await api.close();
});
