import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { startCaddy } from './support/caddy';
import { type Engine, freePort } from './support/process';

/**
 * What `deploy/Caddyfile` does with a request whose node went away, on a real Caddy. Its nodes here are two sockets of
 * this test.
 */
describe('the front proxy', () => {
  const arrived: { node: string; method: string; body: string }[] = [];
  let caddy: Engine;
  let base: string;
  let steady: Server;
  let dying: Server[];

  /** Takes each request whole; `answers` false: its connection ends then, as that of a killed node. */
  async function node(name: string, answers: boolean): Promise<Server> {
    const server = createServer((request, response) => {
      const chunks: Buffer[] = [];
      request.on('data', (chunk: Buffer) => chunks.push(chunk));
      request.on('end', () => {
        arrived.push({ node: name, method: request.method!, body: Buffer.concat(chunks).toString() });
        if (answers) response.end('ok');
        else request.socket.destroy();
      });
    });
    await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
    return server;
  }
  const portOf = (server: Server) => (server.address() as AddressInfo).port;

  beforeAll(async () => {
    steady = await node('steady', true);
    // A node that failed is left out for a while, so each request that is to meet one has its own.
    dying = [await node('dying', false), await node('dying', false), await node('dying', false)];
    caddy = await startCaddy({
      ingest: [portOf(dying[0]!), portOf(steady)],
      api: [portOf(dying[1]!), portOf(dying[2]!), portOf(steady)],
      realtime: [await freePort(), portOf(steady)],
    });
    base = caddy.url;
  });
  afterAll(async () => {
    await caddy?.stop();
    steady?.close();
    dying?.forEach((server) => server.close());
  });
  beforeEach(() => void arrived.splice(0));

  const labels = '{"label":"x"}';

  test.each(['/v1/api-keys', '/v1/webhooks/kick'])(
    'a POST to %s that a node has taken goes to no other',
    async (path) => {
      const answer = await fetch(base + path, { method: 'POST', body: labels });
      expect(answer.status).toBe(502);
      expect(arrived).toEqual([{ node: 'dying', method: 'POST', body: labels }]);
    },
  );

  test('a GET that a node has taken is asked of another', async () => {
    const answer = await fetch(`${base}/v1/events`);
    expect([answer.status, await answer.text()]).toEqual([200, 'ok']);
    expect(arrived.map(({ node }) => node)).toEqual(expect.arrayContaining(['dying', 'steady']));
  });

  test('a POST that no node has taken goes to another, whole', async () => {
    const body = 'x'.repeat(1_000_000);
    const answer = await fetch(`${base}/v1/ws`, { method: 'POST', body });
    expect(answer.status).toBe(200);
    expect(arrived).toEqual([{ node: 'steady', method: 'POST', body }]);
  });
});
