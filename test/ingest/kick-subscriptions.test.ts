import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { createHttpClients } from '../../vendors/http/client';
import type { HttpClients } from '../../vendors/http/port';
import { KICK_EVENTS, kickSubscriptions } from '../../vendors/kick/subscriptions';

let server: Server;
let http: HttpClients;
let api_url: string;
/** Answer of Kick to the request for new subscriptions. */
let made: { name: string; error?: string; subscription_id?: string }[];
let status = 200;

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    const listed = [{ id: 'kept', event: KICK_EVENTS[0] }];
    const data = request.method === 'GET' ? listed : made;
    response
      .writeHead(request.method === 'GET' ? 200 : status, { 'content-type': 'application/json' })
      .end(JSON.stringify({ data }));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  api_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
});
afterAll(async () => {
  await http.close();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});

async function noted(): Promise<{ notes: unknown[]; failure: string | null }> {
  const notes: unknown[] = [];
  const failure = await kickSubscriptions(http, { api_url })
    .ensure('token', async (ids) => void notes.push(ids))
    .then(
      () => null,
      (error: Error) => error.message,
    );
  return { notes, failure };
}

const named = KICK_EVENTS.slice(1).map((name, n) => ({ name, subscription_id: `new-${n}` }));

test('the ids of all subscriptions are noted, and none while new ones are being made', async () => {
  made = named;
  expect(await noted()).toEqual({
    notes: [null, ['kept', ...named.map(({ subscription_id }) => subscription_id)]],
    failure: null,
  });
});

test('the ids are noted although Kick refuses one event type', async () => {
  made = [{ name: named[0]!.name, error: 'forbidden' }, ...named.slice(1)];
  const { notes, failure } = await noted();
  expect(notes.at(-1)).toEqual(['kept', ...named.slice(1).map(({ subscription_id }) => subscription_id)]);
  expect(failure).toContain(named[0]!.name);
});

test('a subscription without an id leaves the ids unknown', async () => {
  made = [{ name: named[0]!.name }, ...named.slice(1)];
  expect((await noted()).notes).toEqual([null, null]);
});

test('a request that Kick refuses as a whole leaves the ids of before, and a reason for the status', async () => {
  made = [];
  status = 403;
  const { notes, failure } = await noted();
  status = 200;
  expect(notes).toEqual([null, ['kept']]);
  expect(failure).toContain(`Kick refuses ${KICK_EVENTS.slice(1).join(', ')}`);
});
