import { createConnection, type Socket } from 'node:net';
import { parseJsonBody } from '../../../api/http/requests/json-body';
import { readFileSync } from 'node:fs';
import { promised, timeLimit } from '../../support/patience';
import { startServer, type TestServer } from '../../support/server';

const MEMBERS = 90_000;
const BODY_BYTES = 900_000;
const CONNECTIONS = 400;

test.each([1_000, 10_000])('a body of 90,000 members is refused in less than 10 ms where %d are allowed', (most) => {
  const text = `{${Array.from({ length: MEMBERS }, (_one, n) => `"m${n}":1`).join()}}`;
  const body = Buffer.from(text.padEnd(979_000));
  const durations = Array.from({ length: 20 }, () => {
    const began = performance.now();
    expect(() => parseJsonBody(body, most)).toThrow(`more than ${most} members`);
    return performance.now() - began;
  });
  const median = durations.sort((a, b) => a - b)[10];
  expect(median).toBeLessThan(timeLimit(10));
});

describe('bodies of requests that never end', () => {
  const residentMiB = ({ pid }: TestServer) =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${pid}/status`, 'utf8'))![1]) / 1024;

  /** A connection that has sent all bytes but one of a body, or was closed for it. */
  function unfinished({ base_url }: TestServer, path: string, localAddress: string): Promise<Socket> {
    const { port, hostname } = new URL(base_url);
    return new Promise((done) => {
      const socket = createConnection({ port: Number(port), host: hostname, localAddress });
      socket.once('close', () => done(socket)).on('error', () => undefined);
      const headers = `host: x\r\ncontent-type: application/json\r\ncontent-length: ${BODY_BYTES + 1}\r\n`;
      socket.resume().write(`POST ${path} HTTP/1.1\r\n${headers}\r\n${'x'.repeat(BODY_BYTES)}`, () => done(socket));
    });
  }

  test.each([
    ['one address', '/v1/auth/token/exchange', 1],
    ['20 addresses', '/v1/auth/token/exchange', 20],
    ['20 addresses without a signature', '/v1/webhooks/kick', 20],
  ])('hold a bounded memory: 400 of %s', async (_what, path, addresses) => {
    const server = await startServer();
    const before = residentMiB(server);
    let highest = before;
    const sampled = setInterval(() => (highest = Math.max(highest, residentMiB(server))), 20);
    const all = Array.from({ length: CONNECTIONS }, (_one, n) =>
      unfinished(server, path, `127.0.0.${2 + (n % addresses)}`),
    );
    const sockets = await Promise.all(all);
    // The server answers while it holds what it may hold.
    expect((await fetch(`${server.base_url}/v1/health`)).status).toBe(200);
    const open = () => sockets.filter(({ destroyed }) => !destroyed).length;
    await promised(async () => (open() === 0 ? true : undefined), 'every connection is closed', 40_000);
    clearInterval(sampled);
    expect(highest - before).toBeLessThan(200);
    await server.dispose();
  });
});
