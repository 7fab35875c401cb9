import { lookup } from 'node:dns';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { createServer as createTcp, type AddressInfo, type Socket } from 'node:net';
import { gzipSync } from 'node:zlib';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { isPublic } from '../../lib/net/public-addresses';
import { createHttpClients } from '../../vendors/http/client';
import { HttpFailed, type HttpClient, type HttpClients } from '../../vendors/http/port';
import { retryAfterMs } from '../../vendors/http/retry-after';
import { until } from '../support/projections';
import { timeLimit } from '../support/patience';

type Answer = (request: IncomingMessage, response: ServerResponse, body: string) => void;

let server: Server;
let port: number;
let answer: Answer;
let requests: { method: string; path: string; key: string | undefined; encoding: string | undefined; body: string }[];
let clients: HttpClients;
let client: HttpClient;
const metrics = createPrometheusMetrics({});
const opened: HttpClients[] = [];
const given = (options: Partial<Parameters<typeof createHttpClients>[0]> = {}) => {
  const made = createHttpClients({ metrics, allow_loopback: true, ...options });
  opened.push(made);
  return made;
};

beforeEach(async () => {
  requests = [];
  answer = (_request, response) => response.end('fine');
  server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString()));
    request.on('end', () => {
      const { 'idempotency-key': key, 'accept-encoding': encoding } = request.headers;
      requests.push({ method: request.method!, path: request.url!, key: key as string | undefined, encoding, body });
      answer(request, response, body);
    });
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  port = (server.address() as AddressInfo).port;
  clients = given();
  client = clients.client('test', [`127.0.0.1:${port}`]);
});
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});
const at = (path = '/') => `http://127.0.0.1:${port}${path}`;

test('a call is sent as it is asked for, and its answer is whole', async () => {
  answer = (_request, response) => response.writeHead(201, { 'x-said': 'yes' }).end('{"id":820982911946154508}');
  const said = await client.ask({ method: 'POST', url: at('/v1?q=a'), body: 'b', idempotency_key: 'k1' });
  expect({ status: said.status, said: said.headers['x-said'], body: said.body.toString() }).toEqual({
    status: 201,
    said: 'yes',
    body: '{"id":820982911946154508}',
  });
  expect(requests).toEqual([{ method: 'POST', path: '/v1?q=a', key: 'k1', encoding: 'identity', body: 'b' }]);
});

describe('what is not of the open internet is refused', () => {
  test.each([
    '127.0.0.1',
    '10.0.0.1',
    '172.16.0.1',
    '192.168.1.1',
    '169.254.169.254',
    '100.64.0.1',
    '0.0.0.0',
    '0.1.2.3',
    '198.18.0.1',
    '224.0.0.1',
    '240.0.0.1',
    '255.255.255.255',
    '::',
    '::1',
    '::127.0.0.1',
    '::7f00:1',
    '::ffff:0:7f00:1',
    '64:ff9b:2::7f00:1',
    '4000::1',
    '2a00:1450::5efe:7f00:1',
    '::ffff:127.0.0.1',
    '::ffff:8.8.8.8',
    '64:ff9b::7f00:1',
    '64:ff9b:1::a00:1',
    '2002:7f00:1::',
    '2001:0:53aa:64c::1',
    'fe80::1',
    'fe80::1%eth0',
    'fc00::1',
    'fec0::1',
    'ff02::1',
    '2001:db8::1',
    'nonsense',
  ])('%s', (address) => expect(isPublic(address)).toBe(false));
  test.each(['8.8.8.8', '1.1.1.1', '2606:4700:4700::1111'])('but not %s', (address) =>
    expect(isPublic(address)).toBe(true),
  );

  test.each([
    ['octal', 'https://0177.0.0.1/', '127.0.0.1'],
    ['hexadecimal', 'https://0x7f000001/', '127.0.0.1'],
    ['one number', 'https://2130706433/', '127.0.0.1'],
    ['two numbers', 'https://127.1/', '127.0.0.1'],
    ['full-width digits', 'https://１２７.0.0.1/', '127.0.0.1'],
    ['mapped', 'https://[::ffff:127.0.0.1]/', '::ffff:7f00:1'],
    ['an IPv4 address as the end of an IPv6 one', 'https://[::127.0.0.1]/', '::7f00:1'],
    ['metadata', 'https://169.254.169.254/latest/meta-data', '169.254.169.254'],
  ])('%s notation, even of a host that is listed', async (_what, url, host) => {
    const strict = given({ allow_loopback: false }).client('strict', [host, `[${host}]`]);
    await expect(strict.call({ method: 'GET', url })).rejects.toThrow(NotSent);
    await expect(strict.call({ method: 'GET', url })).rejects.toThrow('is not a public address');
  });

  test.each([
    ['another host', 'https://evil.example/'],
    ['a host that ends alike', 'https://evilapi.example.com/'],
    ['a host that begins alike', 'https://api.example.com.evil.example/'],
    ['another port', 'https://api.example.com:8443/'],
    ['plain http', 'http://api.example.com/'],
    ['another scheme', 'file:///etc/passwd'],
    ['a password', 'https://me:secret@api.example.com/'],
    ['a listed host as the user', 'https://api.example.com@evil.example/'],
    ['a bare domain below which hosts are listed', 'https://example.org/'],
  ])('%s', async (_what, url) => {
    const strict = clients.client('strict', ['api.example.com', '*.example.org']);
    await expect(strict.call({ method: 'GET', url })).rejects.toThrow(NotSent);
    await expect(strict.call({ method: 'GET', url })).rejects.not.toThrow(/secret/);
  });

  test('in development this machine by its name, and another port of it, but no metadata of a cloud', async () => {
    const named = clients.client('named', ['localhost:1']);
    const { status } = await named.call({ method: 'GET', url: `http://localhost:${port}/` });
    expect(status).toBe(200);
    await expect(named.call({ method: 'GET', url: 'http://169.254.169.254/' })).rejects.toThrow(NotSent);
    // A client that is led to nobody's own machine stays outside.
    const outside = clients.client('outside', ['api.example.com']);
    await expect(outside.call({ method: 'GET', url: at() })).rejects.toThrow(NotSent);
    const strict = given({ allow_loopback: false }).client('strict', [`localhost:${port}`]);
    await expect(strict.call({ method: 'GET', url: `http://localhost:${port}/` })).rejects.toThrow(NotSent);
  });

  const resolving = (answers: readonly string[][]): { resolve: typeof lookup; asked: () => number } => {
    let asked = 0;
    const resolve = ((_host: string, _options: object, done: (error: null, found: object[]) => void) => {
      const found = answers[Math.min(asked, answers.length - 1)]!;
      asked += 1;
      done(
        null,
        found.map((address) => ({ address, family: address.includes(':') ? 6 : 4 })),
      );
    }) as unknown as typeof lookup;
    return { resolve, asked: () => asked };
  };

  test.each([
    ['a private address', [['169.254.169.254']]],
    ['a private one among public ones', [['8.8.8.8', '10.0.0.1']]],
    ['a mapped one', [['::ffff:169.254.169.254']]],
    ['none', [[]]],
  ])('a name that leads to %s', async (_what, answers) => {
    const { resolve } = resolving(answers);
    const strict = given({ allow_loopback: false, resolve }).client('strict', ['api.example.com']);
    const call = strict.call({ method: 'GET', url: 'https://api.example.com/', deadline_ms: 400 });
    await expect(call).rejects.toThrow('api.example.com: LUMIO_PRIVATE_ADDRESS');
  });

  test('a name that leads elsewhere when it is asked again: what was checked is what is connected to', async () => {
    const { resolve, asked } = resolving([['127.0.0.1'], ['169.254.169.254']]);
    const sockets: Socket[] = [];
    const tcp = createTcp((socket) => sockets.push(socket));
    await new Promise<void>((listening) => tcp.listen(0, '127.0.0.1', listening));
    const { port: silent } = tcp.address() as AddressInfo;
    const named = given({ resolve }).client('named', [`api.example.com:${silent}`]);
    const begun = performance.now();
    const call = named.call({ method: 'POST', url: `https://api.example.com:${silent}/`, deadline_ms: 1_500 });
    // A handshake that nobody answers ends with the deadline, too.
    await expect(call).rejects.toThrow(NotSent);
    expect(performance.now() - begun).toBeLessThan(timeLimit(10_000));
    expect({ asked: asked(), connected: sockets.length }).toEqual({ asked: 1, connected: 1 });
    sockets.forEach((socket) => socket.destroy());
    await new Promise((closed) => tcp.close(closed));
  });
});

test('a redirect is an answer, and is not followed', async () => {
  answer = (_request, response) => response.writeHead(302, { location: 'http://169.254.169.254/' }).end();
  expect((await client.call({ method: 'GET', url: at() })).status).toBe(302);
  expect(requests).toHaveLength(1);
  await expect(client.ask({ method: 'GET', url: at() })).rejects.toThrow(HttpFailed);
});

describe('bounds', () => {
  test('the deadline holds for a body that drips', async () => {
    answer = (_request, response) => {
      response.writeHead(200);
      const drip = setInterval(() => response.write('.'), 20);
      response.on('close', () => clearInterval(drip));
    };
    const begun = performance.now();
    await expect(client.call({ method: 'POST', url: at(), deadline_ms: 300 })).rejects.toThrow(OutcomeUnknown);
    expect(performance.now() - begun).toBeLessThan(timeLimit(10_000));
  });

  test('the deadline holds for a server that never answers', async () => {
    answer = () => undefined;
    const call = client.call({ method: 'POST', url: at(), deadline_ms: 200 });
    await expect(call).rejects.toThrow('127.0.0.1: no time is left');
  });

  test('a body that is too long is not read to its end', async () => {
    let written = 0;
    answer = (_request, response) => {
      const more = () => {
        while (written < 1 << 28 && response.write(Buffer.alloc(65_536))) written += 65_536;
      };
      response.on('drain', more);
      more();
    };
    await expect(client.call({ method: 'POST', url: at(), max_bytes: 100_000 })).rejects.toThrow('longer than 100000');
    expect(written).toBeLessThan(1 << 26);
  });

  test('headers that are too long end the call', async () => {
    const sockets: Socket[] = [];
    const tcp = createTcp((socket) => {
      sockets.push(socket);
      socket.on('error', () => undefined);
      socket.once('data', () => socket.write(`HTTP/1.1 200 OK\r\nx-long: ${'x'.repeat(100_000)}\r\n\r\n`));
    });
    await new Promise<void>((listening) => tcp.listen(0, '127.0.0.1', listening));
    const { port: raw } = tcp.address() as AddressInfo;
    const call = clients.client('raw', [`127.0.0.1:${raw}`]).call({ method: 'POST', url: `http://127.0.0.1:${raw}/` });
    await expect(call).rejects.toThrow('UND_ERR_HEADERS_OVERFLOW');
    sockets.forEach((socket) => socket.destroy());
    await new Promise((closed) => tcp.close(closed));
  });

  test('a compressed answer is refused, so a small one cannot become a large one', async () => {
    answer = (_request, response) =>
      response.writeHead(200, { 'content-encoding': 'gzip' }).end(gzipSync(Buffer.alloc(50_000_000)));
    await expect(client.call({ method: 'POST', url: at() })).rejects.toThrow('a compressed answer was not asked for');
  });
});

describe('tries', () => {
  test('what bears repeating is repeated under its one key, after the pause that was asked for', async () => {
    const times: number[] = [];
    answer = (_request, response) => {
      times.push(performance.now());
      if (times.length < 3) response.writeHead(503, { 'retry-after': '1' }).end();
      else response.end('done');
    };
    expect((await client.ask({ method: 'POST', url: at(), idempotency_key: 'k' })).body.toString()).toBe('done');
    expect(requests.map(({ key }) => key)).toEqual(['k', 'k', 'k']);
    expect(times[1]! - times[0]!).toBeGreaterThan(900);
  });

  test('what does not bear repeating is sent once: an error is its answer, silence an unknown outcome', async () => {
    answer = (_request, response) => response.writeHead(500).end();
    expect((await client.call({ method: 'POST', url: at() })).status).toBe(500);
    answer = (request) => request.socket.destroy();
    await expect(client.call({ method: 'POST', url: at() })).rejects.toThrow(OutcomeUnknown);
    expect(requests).toHaveLength(2);
  });

  test('an error of the other side leaves a call that bears no repeating unknown to who asks for a success', async () => {
    const asked = async (status: number, headers = {}, request = {}) => {
      answer = (_request, response) => response.writeHead(status, headers).end();
      // A circuit of its own each time: these errors would open it.
      const own = given().client('own', [`127.0.0.1:${port}`]);
      return own.ask({ method: 'POST', url: at(), deadline_ms: 1_000, ...request }).catch((error: Error) => error.name);
    };
    expect(await asked(500)).toBe('OutcomeUnknown');
    expect(await asked(504)).toBe('OutcomeUnknown');
    expect(await asked(422)).toBe('HttpFailed');
    expect(await asked(503, { 'retry-after': '5' })).toBe('HttpFailed');
    expect(await asked(500, {}, { idempotency_key: 'k' })).toBe('HttpFailed');
    expect(await asked(500, {}, { method: 'GET' })).toBe('HttpFailed');
  });

  test('when no try is left the last answer is given', async () => {
    answer = (_request, response) => response.writeHead(429, { 'retry-after': '3600' }).end();
    const said = await client.call({ method: 'GET', url: at(), deadline_ms: 5_000 });
    expect({ status: said.status, retry_after_ms: said.retry_after_ms }).toEqual({
      status: 429,
      retry_after_ms: 3_600_000,
    });
    expect(requests).toHaveLength(1);
  });

  test('where one try may have been done the outcome stays unknown, whatever the next one meets', async () => {
    answer = (request) => {
      request.socket.destroy();
      server.closeAllConnections();
      server.close();
    };
    const call = client.call({ method: 'POST', url: at(), idempotency_key: 'k', deadline_ms: 2_000 });
    await expect(call).rejects.toThrow(OutcomeUnknown);
    expect(requests).toHaveLength(1);
    await new Promise<void>((listening) => server.listen(port, '127.0.0.1', listening));
  });

  test('given up in a pause after an answer, the answer stays: it was sent', async () => {
    const giving_up = new AbortController();
    answer = (_request, response) => {
      response.writeHead(503, { 'retry-after': '5' }).end();
      setTimeout(() => giving_up.abort(), 100);
    };
    const call = client.call({ method: 'POST', url: at(), idempotency_key: 'k', signal: giving_up.signal });
    expect((await call).status).toBe(503);
    expect(requests).toHaveLength(1);
  });

  test('a header is sent once, however its name is written, and none smuggles another', async () => {
    await client.call({ method: 'GET', url: at(), headers: { 'Accept-Encoding': 'gzip', 'Idempotency-Key': 'other' } });
    expect(requests[0]).toMatchObject({ encoding: 'identity', key: 'other' });
    const smuggled = client.call({ method: 'GET', url: at(), headers: { 'x-a': 'b\r\nx-c: d' }, deadline_ms: 300 });
    await expect(smuggled).rejects.toThrow(NotSent);
    expect(requests).toHaveLength(1);
  });

  test('nobody there: nothing was sent', async () => {
    const nobody = createTcp();
    await new Promise<void>((listening) => nobody.listen(0, '127.0.0.1', listening));
    const { port: free } = nobody.address() as AddressInfo;
    await new Promise((closed) => nobody.close(closed));
    const call = clients
      .client('nobody', [`127.0.0.1:${free}`])
      .call({ method: 'POST', url: `http://127.0.0.1:${free}/`, deadline_ms: 1_500 });
    await expect(call).rejects.toThrow(NotSent);
  });

  test('a host that keeps failing is left alone for a while, which metrics show; another one is not', async () => {
    answer = (_request, response) => response.writeHead(500).end();
    for (let calls = 0; calls < 6; calls += 1) await client.call({ method: 'POST', url: at() }).catch(() => undefined);
    const before = requests.length;
    await expect(client.call({ method: 'POST', url: at(), deadline_ms: 300 })).rejects.toThrow(NotSent);
    expect(requests).toHaveLength(before);
    expect(await metrics.render()).toMatch(/lumio_http_client_circuits_open\{client="test"\} 1/);
  });

  test('a part of a host that keeps failing is left alone, and the host is when several parts fail', async () => {
    answer = ({ url }, response) => (url === '/bad' ? response.writeHead(500).end() : response.end('fine'));
    const call = (part: string, path: string) =>
      client.call({ method: 'POST', url: at(path), part, deadline_ms: 300 }).then(
        ({ status }) => status,
        (error: Error) => error.name,
      );
    const calls = async (part: string, times: number) => {
      for (let time = 0; time < times; time += 1) await call(part, '/bad');
    };
    await calls('one', 8);
    const sent = requests.length;
    expect([await call('one', '/good'), requests.length]).toEqual(['NotSent', sent]);
    expect([await call('two', '/good'), await call('two', '/bad')]).toEqual([200, 500]);
    for (const part of ['three', 'four', 'five']) await calls(part, 2);
    expect(await call('six', '/good')).toBe('NotSent');
    expect(await metrics.render()).toMatch(/lumio_http_client_circuits_open\{client="test"\} 1/);
  });

  test('calls that their callers gave up do not count against the host', async () => {
    answer = () => undefined;
    for (let calls = 0; calls < 6; calls += 1) {
      const caller = new AbortController();
      const sent = requests.length;
      const call = client.call({ method: 'POST', url: at(), signal: caller.signal });
      await Promise.all([
        expect(call).rejects.toThrow(),
        until(() => requests.length > sent).then(() => caller.abort()),
      ]);
    }
    answer = (_request, response) => response.end('fine');
    expect((await client.call({ method: 'POST', url: at() })).status).toBe(200);
  });

  test('of hosts that are forgotten for newer ones none counts as left alone for ever', async () => {
    const shops = given().client('shops', [`127.0.0.1:${port}`, '*.example.com']);
    answer = (_request, response) => response.writeHead(500).end();
    for (let calls = 0; calls < 6; calls += 1) await shops.call({ method: 'POST', url: at() }).catch(() => undefined);
    const open = async (count: number) =>
      (await metrics.render()).includes(`lumio_http_client_circuits_open{client="shops"} ${count}`);
    expect(await open(1)).toBe(true);
    const signal = AbortSignal.abort();
    for (let shop = 0; shop < 1_000; shop += 1) {
      const call = shops.call({ method: 'GET', url: `https://s${shop}.example.com/`, signal });
      await expect(call).rejects.toThrow(NotSent);
    }
    expect(await open(0)).toBe(true);
  });
});

test('Retry-After is seconds or a date, a day at most', () => {
  const now = Date.parse('2026-01-01T00:00:00Z');
  expect(retryAfterMs('5', now)).toBe(5_000);
  expect(retryAfterMs('Thu, 01 Jan 2026 00:01:00 GMT', now)).toBe(60_000);
  expect(retryAfterMs('Wed, 31 Dec 2025 00:01:00 GMT', now)).toBe(0);
  expect(retryAfterMs('999999999', now)).toBe(86_400_000);
  for (const odd of [undefined, '', 'soon', '-1x']) expect(retryAfterMs(odd, now)).toBeUndefined();
});

test('errors and metrics tell no more of a call than its host', async () => {
  answer = (request) => request.socket.destroy();
  const url = at('/secret-path?token=secret');
  const failed = await client
    .call({ method: 'POST', url, headers: { authorization: 'Bearer secret' }, body: 'secret' })
    .catch((error: Error) => error);
  expect(failed).toBeInstanceOf(OutcomeUnknown);
  expect(String(failed)).not.toContain('secret');
  expect(await metrics.render()).not.toContain('secret');
});
