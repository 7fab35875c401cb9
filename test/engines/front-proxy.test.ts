import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { type Engine, freePort, program, startEngine } from './support/process';

/** What `deploy/Caddyfile` does with a request whose node went away, on a real Caddy. Its nodes here are two sockets of this test. */
describe('the front proxy', () => {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-proxy-'));
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
    const [own, closed] = [await freePort(), await freePort()];
    const caddyfile = readFileSync(join(__dirname, '../../deploy/Caddyfile'), 'utf8');
    const places: Record<string, number[]> = {
      ingest: [portOf(dying[0]!), portOf(steady)],
      api: [portOf(dying[1]!), portOf(dying[2]!), portOf(steady)],
      realtime: [closed, portOf(steady)],
    };
    // In place of names that only docker compose knows; every other line is as it is there. The first upstream is tried first.
    const here = caddyfile
      .replace(
        /dynamic a (\w+) 7070 \{[^}]*\}/g,
        (_whole, name: string) => `to ${places[name]!.map((port) => `127.0.0.1:${port}`).join(' ')}`,
      )
      .replaceAll('lb_policy least_conn', 'lb_policy first')
      .replace(':8080 {', `:${own} {`);
    expect(here.match(/to 127/g)).toHaveLength(3);
    writeFileSync(join(folder, 'Caddyfile'), here);
    base = `http://127.0.0.1:${own}`;
    caddy = await startEngine({
      url: base,
      port: own,
      command: program('caddy', 'caddy'),
      args: ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'],
      env: { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
      log: join(folder, 'log'),
    });
  });
  afterAll(async () => {
    await caddy?.stop();
    steady?.close();
    dying?.forEach((server) => server.close());
    rmSync(folder, { recursive: true, force: true });
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
