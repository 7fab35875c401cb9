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
  expect(await lines('?platform=twitch')).toEqual([]);
  expect(await lines('?user_id=nobody')).toEqual([]);
  const refused = await new ApiClient(server.base_url, me.access_token).get(path('?search=exact'));
  expect(refused.status).toBe(400);
  expect(await lines('', other)).toEqual([]);
});

test('is CSV for those who accept it', async () => {
  const headers = { authorization: `Bearer ${other.access_token}`, accept: 'text/csv, */*;q=0.1' };
  const api = new ApiClient(server.base_url, other.access_token);
  const sent = { event_type: 'custom:csv', raw: { text: '=1, "2"' }, created_at: '2026-01-02T03:04:05Z' };
  expect((await api.send('POST', '/v1/events/emit', sent)).status).toBe(200);
  const answer = await fetch(server.base_url + path(), { headers });
  expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
  const [head, row, end] = (await answer.text()).split('\r\n');
  expect(head).toBe('id,account_id,type,platform,external_id,raw,created_at');
  expect(row).toContain(',custom:csv,custom,,"{""text"":""=1, ');
  expect(row).toContain(',2026-01-02T03:04:05');
  expect(end).toBe('');
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
