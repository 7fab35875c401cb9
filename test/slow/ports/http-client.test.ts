import { getEventListeners } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { type AddressInfo } from 'node:net';
import { queryObjects } from 'node:v8';
import { createPrometheusMetrics } from '../../../engines/metrics/prometheus';
import { createHttpClients } from '../../../vendors/http/client';
import { type HttpClient, type HttpClients } from '../../../vendors/http/port';

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

test('calls leave nothing behind in a signal that outlives them', async () => {
  const { signal } = new AbortController();
  const call = () => client.ask({ method: 'GET', url: at(), signal });
  await call();
  // Collects garbage first.
  const signals = () => queryObjects(AbortSignal, { format: 'count' });
  const before = signals();
  for (let n = 0; n < 30; n += 1) await call();
  expect(signals() - before).toBeLessThan(10);
  expect(getEventListeners(signal, 'abort')).toEqual([]);
});
