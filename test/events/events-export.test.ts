import { request } from 'node:http';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';
import { ApiClient, eventually } from '../support/vendor-cloud';

let server: SharedServer;
let me: MadeAccount;
let other: MadeAccount;
beforeAll(async () => {
  server = await sharedServer();
  [me, other] = [await server.account(), await server.account()];
  const api = new ApiClient(server.base_url, me.access_token);
  for (let n = 0; n < 5; n += 1) {
    const created_at = new Date(Date.now() - (10 - n) * 60_000).toISOString();
    const sent = { event_type: n === 4 ? 'custom:last' : 'custom:one', raw: { n, exact: 1 }, created_at };
    expect((await api.send('POST', '/v1/events/emit', sent)).status).toBe(200);
  }
});

const path = (query = '') => `/v1/events/export${query}`;
async function lines(query = '', of = me): Promise<any[]> {
  const answer = await fetch(server.base_url + path(query), {
    headers: { authorization: `Bearer ${of.access_token}` },
  });
  expect(answer.status).toBe(200);
  expect(answer.headers.get('content-type')).toContain('application/x-ndjson');
  const text = await answer.text();
  return text === ''
    ? []
    : text
        .trimEnd()
        .split('\n')
        .map((line) => JSON.parse(line));
}

test('has each event of the account once, oldest first, as it is read elsewhere', async () => {
  const all = await lines();
  expect(all.map(({ raw }) => raw.n)).toEqual([0, 1, 2, 3, 4]);
  const one = await new ApiClient(server.base_url, me.access_token).get(`/v1/events/${all[0].id}`);
  expect(all[0]).toEqual(one.body.data);
  expect((await lines('?types=custom:last')).map(({ raw }) => raw.n)).toEqual([4]);
  expect((await lines(`?from=${all[1].created_at}&to=${all[3].created_at}`)).map(({ raw }) => raw.n)).toEqual([1, 2]);
  expect(await lines('', other)).toEqual([]);
});

test('an account has one export at a time; one that is left ends', async () => {
  const headers = { authorization: `Bearer ${me.access_token}` };
  const head = await fetch(server.base_url + path(), { method: 'HEAD', headers });
  expect(head.status).toBe(200);
  const api = new ApiClient(server.base_url, me.access_token);
  // Large enough that the connection's buffers do not take it.
  const raw = { text: 'x'.repeat(200_000) };
  for (let n = 0; n < 60; n += 1)
    expect((await api.send('POST', '/v1/events/emit', { event_type: 'custom:large', raw })).status).toBe(200);
  const slow = request(server.base_url + path(), { headers });
  await new Promise<void>((begun, fail) => {
    slow.once('response', (answer) => {
      answer.pause();
      begun();
    });
    slow.once('error', fail);
    slow.end();
  });
  expect(await api.get(path())).toMatchObject({ status: 429, body: { error: 'RATE_LIMIT_EXCEEDED' } });
  slow.on('error', () => undefined);
  slow.destroy();
  await eventually(
    async () => ((await fetch(server.base_url + path('?types=none'), { headers })).status === 200 ? true : undefined),
    'the end of the other export',
  );
});
