import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import { withAnyToken } from '../../ingest/runtime/connection/with-any-token';
import { createHttpClients } from '../../vendors/http/client';
import { type HttpClients, HttpFailed } from '../../vendors/http/port';
import { AppRefused, GrantRefused, VendorUnavailable } from '../../vendors/oauth/port';
import { twitchOAuth } from '../../vendors/twitch/oauth';
import { createTwitch } from '../../vendors/twitch/api';

let server: Server;
let base_url: string;
let http: HttpClients;
let answer: { status: number; body: object };

beforeAll(async () => {
  server = createServer((request, response) => {
    request.resume();
    response.writeHead(answer.status, { 'content-type': 'application/json' }).end(JSON.stringify(answer.body));
  });
  await new Promise<void>((listening) => server.listen(0, '127.0.0.1', listening));
  base_url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  http = createHttpClients({ metrics: createPrometheusMetrics({}), allow_loopback: true });
});
afterAll(async () => {
  await http.close();
  server.closeAllConnections();
  await new Promise((closed) => server.close(closed));
});

test.each([
  [400, { error: 'invalid_grant' }, GrantRefused],
  [401, { error: 'invalid_token' }, GrantRefused],
  [400, { error: 'token_revoked' }, GrantRefused],
  [400, { error: 'unsupported_grant_type' }, VendorUnavailable],
  [400, { status: 400, message: 'Invalid refresh token' }, GrantRefused],
  [400, { status: 11706, error: 'invalid grant', message: 'invalid' }, GrantRefused],
  [401, { error: 'invalid_request', error_description: 'The refresh token is invalid.' }, GrantRefused],
  [403, { status: 403, message: 'invalid client secret' }, AppRefused],
  [400, { error: 'invalid_request' }, VendorUnavailable],
  [400, { error: 'temporarily_unavailable' }, VendorUnavailable],
  [401, { message: 'Request blocked' }, VendorUnavailable],
])('a refresh that is answered %i %j fails as %p', async (status, body, failure) => {
  answer = { status, body };
  const vendor = twitchOAuth(http, { id_url: base_url, api_url: base_url });
  await expect(vendor.refresh({ client_id: 'app', client_secret: 's' }, 'token')).rejects.toThrow(failure);
});

test('a token is refused by Twitch’s 401 alone', async () => {
  const twitch = createTwitch(http, {
    api_url: base_url,
    id_url: base_url,
    eventsub_url: 'ws://127.0.0.1:1',
    allow_loopback: true,
  });
  answer = { status: 401, body: { status: 401, message: 'invalid access token' } };
  expect(await twitch.validate('token')).toBeNull();
  answer = { status: 403, body: {} };
  await expect(twitch.validate('token')).rejects.toThrow(HttpFailed);
});

describe('a call that any connection may make', () => {
  const tokens = { token: (connection_id: string) => Promise.resolve(connection_id) } as never;
  const connections = ['one', 'two'].map((connection_id) => ({ connection_id }));

  test('is made with the next token where the first is answered 403', async () => {
    const call = (token: string) =>
      token === 'one' ? Promise.reject(new HttpFailed('vendor', 403)) : Promise.resolve(token);
    expect(await withAnyToken(tokens, connections, call)).toBe('two');
  });

  test('fails at once where the vendor is not to be had', async () => {
    const asked: string[] = [];
    const call = (token: string) => {
      asked.push(token);
      return Promise.reject(new HttpFailed('vendor', 503));
    };
    await expect(withAnyToken(tokens, connections, call)).rejects.toThrow(HttpFailed);
    expect(asked).toEqual(['one']);
  });
});
