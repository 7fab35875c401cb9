import { execFile } from 'node:child_process';
import { promisify } from 'node:util';
import { gzipSync } from 'node:zlib';
import { type ApiProcess, OWNER, startSampleApi, sampleApiOfFile } from '../support/api-process';
import type { TestDatabase } from '../support/database';
import { parseAnswer, rawHttp } from '../support/raw-http';

/** What HTTP lets clients do beside sending a well-formed request in origin form. */
const ID = '0197f3a0-0000-7000-8000-000000000001';
const AUTHORIZATION = `authorization: Bearer ${OWNER}\r\n`;
let database: TestDatabase;
let api: ApiProcess;
sampleApiOfFile((one, of) => ([api, database] = [one, of]));
const host = () => new URL(api.url).host;
const send = async (head: string, body = '') =>
  parseAnswer(await rawHttp(api.url, `${head}connection: close\r\n\r\n${body}`));

describe('an offer of another protocol', () => {
  const OFFER = 'Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAoAAAAAIAAAAA\r\n';
  const offered = async (start: string, body: string | Buffer = '') =>
    parseAnswer(await rawHttp(api.url, Buffer.concat([Buffer.from(`${start}${OFFER}\r\n`), Buffer.from(body)])));

  test('is declined: the request is answered as any other, and the connection ends', async () => {
    for (const path of ['/v1', '/v1/health', '/v1/server-time', '/v1/schema']) {
      const answer = await offered(`GET ${path} HTTP/1.1\r\nhost: ${host()}\r\n`);
      expect([path, answer.status, answer.headers.connection]).toEqual([path, 200, 'close']);
    }
    const unknown = await offered(`GET /v1/nope HTTP/1.1\r\nhost: ${host()}\r\n`);
    expect([unknown.status, unknown.body]).toEqual([404, '{"error":"NOT_FOUND","message":"Not found"}']);
  });

  test('keeps the body, whole or in chunks, at once or late', async () => {
    const body = JSON.stringify({ note_text: 'x'.repeat(150), raw: { long: 'y'.repeat(200_000) } });
    const start = `POST /v1/notes HTTP/1.1\r\nhost: ${host()}\r\n${AUTHORIZATION}content-type: application/json\r\n`;
    const whole = await offered(`${start}content-length: ${body.length}\r\n`, body);
    expect([whole.status, JSON.parse(whole.body).data.raw.long.length]).toEqual([201, 200_000]);
    const chunks = `${body.length.toString(16)}\r\n${body}\r\n0\r\n\r\n`;
    const chunked = await offered(`${start}transfer-encoding: chunked\r\n`, chunks);
    expect([chunked.status, JSON.parse(chunked.body).data.raw.long.length]).toEqual([201, 200_000]);
    const later = await offered(`${start}content-length: ${body.length}\r\nexpect: 100-continue\r\n`, body);
    expect(later.status).toBe(100);
    expect(parseAnswer(later.body).status).toBe(201);
  });

  test('changes no header of the request, and lets none in', async () => {
    const start = `POST /v1/gql HTTP/1.1\r\nhost: ${host()}\r\n${AUTHORIZATION}X-Correlation-Id: offered-1\r\n`;
    const query = JSON.stringify({ query: '{serverTime{time}}' });
    const answer = await offered(
      `${start}content-type: application/json\r\ncontent-length: ${query.length}\r\n`,
      query,
    );
    expect([answer.status, answer.headers['x-correlation-id']]).toEqual([200, 'offered-1']);
    expect(JSON.parse(answer.body)).toEqual({ data: { serverTime: { time: '2026-01-02T03:04:05Z' } } });
    // What comes behind the request is no second one.
    const twice = await rawHttp(
      api.url,
      `GET /v1 HTTP/1.1\r\nhost: ${host()}\r\n${OFFER}\r\nGET /v1 HTTP/1.1\r\nhost: ${host()}\r\n\r\n`,
    );
    expect(twice.split('HTTP/1.1 200').length).toBe(2);
  });

  test('curl --http2 is served', async () => {
    const { stdout } = await promisify(execFile)('curl', [
      ...['-sS', '--http2', '-w', '\n%{http_code}', '-H', 'content-type: application/json'],
      ...['-H', `authorization: Bearer ${OWNER}`, '-d', '{"note_text":"curl"}', `${api.url}/v1/notes`],
    ]);
    expect(stdout).toMatch(/"note_text":"curl \d+"/);
    expect(stdout).toMatch(/\n201$/);
  });
});

describe('where links begin', () => {
  const selfOf = async (start: string) => {
    const answer = await send(start + AUTHORIZATION);
    expect(answer.status).toBe(200);
    return JSON.parse(answer.body)._links.self as string;
  };

  test('at the host that was asked for when it is this machine', async () => {
    const { port } = new URL(api.url);
    for (const own of [`127.0.0.1:${port}`, `localhost:${port}`, 'localhost', '[::1]:80']) {
      expect(await selfOf(`GET /v1/notes/${ID} HTTP/1.1\r\nhost: ${own}\r\n`)).toBe(`http://${own}/v1/notes/${ID}`);
    }
  });

  test('at no host that anybody made up: they are paths then', async () => {
    for (const foreign of [
      'evil.example',
      'localhost.evil.example',
      'localhost:80@evil.example',
      '127.0.0.1.evil',
      '',
    ]) {
      expect(await selfOf(`GET /v1/notes/${ID} HTTP/1.1\r\nhost: ${foreign}\r\n`)).toBe(`/v1/notes/${ID}`);
    }
    expect(await selfOf(`GET /v1/health HTTP/1.1\r\nhost: evil.example\r\n`)).toBe('/v1/health');
    expect(await selfOf(`GET /v1/notes/${ID} HTTP/1.0\r\n`)).toBe(`/v1/notes/${ID}`);
  });

  test('a target in absolute form is a path, and its host is none of ours to repeat', async () => {
    const absolute = (path: string, name = 'evil.example') =>
      selfOf(`GET http://${name}${path} HTTP/1.1\r\nhost: ${host()}\r\n`);
    expect(await absolute(`/v1/notes/${ID}`)).toBe(`/v1/notes/${ID}`);
    expect(await absolute(`/v1/notes/${ID}`, host())).toBe(`${api.url}/v1/notes/${ID}`);
    expect(await absolute('/v1/notes?limit=1')).toBe('/v1/notes?limit=1');
    const none = await send(`GET http://evil.example HTTP/1.1\r\nhost: ${host()}\r\n`);
    expect([none.status, none.body]).toEqual([404, '{"error":"NOT_FOUND","message":"Not found"}']);
  });

  test('at the public URL when one is configured, whatever was asked for', async () => {
    const node = await startSampleApi(database.url, { public_url: 'https://api.example/' });
    try {
      const answer = parseAnswer(
        await rawHttp(node.url, 'GET /v1/health HTTP/1.1\r\nhost: evil.example\r\nconnection: close\r\n\r\n'),
      );
      expect(JSON.parse(answer.body)._links.self).toBe('https://api.example/v1/health');
    } finally {
      await node.stop();
    }
  });

  test('a credential in the query does not come back, however its name is spelled', async () => {
    for (const name of ['token', '%74oken', 'toke%6e']) {
      const { json } = await api.rest('GET', `/v1/notes?limit=25&${name}=secret&page=1`);
      expect(JSON.stringify(json._links)).not.toContain('secret');
      expect(json._links.next).toBe(`${api.url}/v1/notes?limit=25&page=2`);
    }
  });
});

describe('heads that are refused', () => {
  const refused = (answer: ReturnType<typeof parseAnswer>, status: number, message: string) => {
    expect([answer.status, answer.body]).toEqual([status, JSON.stringify({ error: 'BAD_REQUEST', message })]);
    expect(answer.headers['content-type']).toBe('application/json; charset=utf-8');
    expect(answer.headers['x-correlation-id']).toMatch(/^[0-9a-f]{24}$/);
  };
  test('no Host, unless the client is of HTTP/1.0', async () => {
    refused(await send('GET /v1 HTTP/1.1\r\n'), 400, 'The Host header is missing');
    expect((await send('GET /v1 HTTP/1.0\r\n')).status).toBe(200);
  });
  test('two of them, equal or not', async () => {
    refused(await send(`GET /v1 HTTP/1.1\r\nhost: ${host()}\r\nHOST: ${host()}\r\n`), 400, 'More than one Host header');
    refused(await send(`GET /v1 HTTP/1.1\r\nhost: ${host()}\r\nhost: b\r\n`), 400, 'More than one Host header');
  });
  test('an expectation that nobody knows; the known one is met', async () => {
    const unknown = `POST /v1/notes HTTP/1.1\r\nhost: ${host()}\r\nexpect: tea\r\ncontent-length: 2\r\n`;
    refused(await send(unknown, '{}'), 417, 'The expectation cannot be met');
    const known = await send(
      `POST /v1/notes HTTP/1.1\r\nhost: ${host()}\r\n${AUTHORIZATION}expect: 100-Continue\r\n` +
        'content-type: application/json\r\ncontent-length: 17\r\n',
      '{"note_text":"a"}',
    );
    expect([known.status, parseAnswer(known.body).status]).toEqual([100, 201]);
  });
});

describe('bodies', () => {
  test('a compressed one is 415', async () => {
    const post = (encoding: string, body: Uint8Array<ArrayBuffer>) =>
      fetch(`${api.url}/v1/notes`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${OWNER}`,
          'content-type': 'application/json',
          'content-encoding': encoding,
        },
        body,
      });
    const packed = await post('gzip', new Uint8Array(gzipSync('{"note_text":"a"}')));
    expect([packed.status, await packed.json()]).toEqual([
      415,
      { error: 'BAD_REQUEST', message: 'Unsupported content encoding: send the body as it is' },
    ]);
    expect((await post('identity', new Uint8Array(Buffer.from('{"note_text":"a"}')))).status).toBe(201);
  });

  const EMPTY = ['', 'application/json', 'text/plain', 'application/x-www-form-urlencoded', 'nonsense'];
  test.each(EMPTY)('an empty one is none, also where it is called %j', async (type) => {
    const head = (framing: string) =>
      `POST /v1/notes/refresh HTTP/1.1\r\nhost: ${host()}\r\n${AUTHORIZATION}${framing}` +
      (type === '' ? '' : `content-type: ${type}\r\n`);
    expect((await send(head('content-length: 0\r\n'))).status).toBe(200);
    expect((await send(head(''))).status).toBe(200);
  });
  test('one of another type is 415 as soon as there is a byte of it', async () => {
    const head = `POST /v1/notes/refresh HTTP/1.1\r\nhost: ${host()}\r\n${AUTHORIZATION}content-type: text/plain\r\n`;
    expect((await send(`${head}content-length: 1\r\n`, 'a')).status).toBe(415);
    expect((await send(`${head}transfer-encoding: chunked\r\n`, '1\r\na\r\n0\r\n\r\n')).status).toBe(415);
    expect((await send(`${head}transfer-encoding: chunked\r\n`, '0\r\n\r\n')).status).toBe(200);
  });
});

describe('paths', () => {
  test('one of its own is none of the items beside it: 405 for a method that it does not have', async () => {
    for (const method of ['GET', 'HEAD', 'PATCH', 'DELETE']) {
      const answer = await api.rest(method, '/v1/notes/refresh');
      expect([method, answer.status, answer.headers.get('allow')]).toEqual([method, 405, 'OPTIONS, POST']);
    }
    expect((await api.rest('POST', '/v1/notes/refresh')).status).toBe(200);
    const item = await api.rest('POST', `/v1/notes/${ID}`);
    expect([item.status, item.headers.get('allow')]).toEqual([405, 'DELETE, GET, HEAD, OPTIONS, PATCH']);
  });
  test('an item without a name is no item', async () => {
    for (const as of ['', OWNER]) {
      for (const method of ['GET', 'POST', 'DELETE']) {
        const answer = await api.rest(method, '/v1/notes/', { as });
        expect([method, answer.status, answer.json.error]).toEqual([method, 404, 'NOT_FOUND']);
      }
    }
  });
});

describe('what an answer names', () => {
  test('401 says what is asked for, and why a credential did not count', async () => {
    const challenge = async (as: string) => {
      const answer = await api.rest('GET', '/v1/notes', { as });
      expect([answer.status, answer.json]).toEqual([
        401,
        { error: 'UNAUTHORIZED', message: 'Authentication required' },
      ]);
      return answer.headers.get('www-authenticate');
    };
    expect(await challenge('')).toBe('Bearer');
    expect(await challenge('expired')).toBe('Bearer error="invalid_token", error_description="The token has expired"');
    expect((await api.rest('GET', '/v1/server-time', { as: 'expired' })).status).toBe(200);
    const unsigned = await fetch(`${api.url}/v1/webhooks/sample`, { method: 'POST', body: '{}' });
    expect([unsigned.status, unsigned.headers.get('www-authenticate')]).toEqual([401, 'Signature']);
  });
  test('201 says where it is, also to the one who asks again', async () => {
    const create = () =>
      api.rest('POST', '/v1/notes', { body: { note_text: 'here' }, headers: { 'idempotency-key': 'location-1' } });
    const [first, again] = [await create(), await create()];
    expect(first.headers.get('location')).toBe(`${api.url}/v1/notes/${ID}`);
    expect([again.headers.get('idempotency-replayed'), again.headers.get('location')]).toEqual([
      'true',
      `${api.url}/v1/notes/${ID}`,
    ]);
    expect((await api.rest('POST', '/v1/notes', { body: { note_text: 'x' } })).headers.get('location')).toBe(
      `${api.url}/v1/notes/${ID}`,
    );
  });
  test('the links of a list that takes no page are links that it takes', async () => {
    const { json } = await api.rest('GET', '/v1/moods');
    expect(Object.keys(json._links)).toEqual(['self', 'first', 'last']);
    for (const link of Object.values(json._links as Record<string, string>)) {
      expect((await api.rest('GET', link.slice(api.url.length))).status).toBe(200);
    }
  });
});
