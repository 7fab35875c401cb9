import { createHmac, randomUUID } from 'node:crypto';
import { WebSocket } from 'ws';
import { loggedError, redact } from '../../engines/log/redaction';
import { Client } from '../support/realtime';
import { startServer, type TestServer } from '../support/server';
import { ApiClient, VendorCloud } from '../support/vendor-cloud';

/** Found nowhere but in what this test sends. */
const CANARY = 'canary-7f3a9c';

describe('the log of a server that is shown secrets in every place', () => {
  let server: TestServer;
  let api: ApiClient;
  let lines: Record<string, unknown>[];
  const secrets: string[] = [CANARY];

  beforeAll(async () => {
    server = await startServer({ env: { LUMIO_LOG_LEVEL: 'trace' } });
    const { credentials } = server;
    const { access_token, refresh_token, user_api_key, system_key, webhook_signing } = credentials;
    secrets.push(access_token, refresh_token, user_api_key, system_key, ...Object.values(webhook_signing));
    api = new ApiClient(server.base_url, access_token);
    const vendors = new VendorCloud(server.base_url, credentials);
    const call = (path: string, init: RequestInit = {}) =>
      fetch(server.base_url + path, init).then((response) => response.text());
    const overlay = `lm_overlay_${CANARY.slice(-6)}${'0'.repeat(58)}`;
    secrets.push(overlay, `Bearer ${CANARY}`);

    // credentials in headers, query and cookies, good and bad, on routes that exist and on such that do not
    await call('/v1/events', { headers: { authorization: `Bearer ${access_token}` } });
    await call('/v1/events', { headers: { authorization: `Bearer ${user_api_key}` } });
    await call('/v1/events', {
      headers: { authorization: `Bearer ${CANARY}`, cookie: `lumio-popout-token=${CANARY}` },
    });
    for (const token of [overlay, access_token, CANARY]) await call(`/v1/events?token=${token}`);
    await call(`/v1/nowhere/${CANARY}?token=${overlay}`);
    await call(`/v1/events/${CANARY}`, { headers: { authorization: `Bearer ${access_token}` } });
    // bodies: refused by the parser, by a schema, by a guard, and taken
    await call('/v1/api-keys', {
      method: 'POST',
      headers: { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' },
      body: `{"label": "${CANARY}" broken`,
    });
    await api.send('POST', '/v1/api-keys', { label: '', secret: CANARY });
    const made = await api.send('POST', '/v1/api-keys', { label: CANARY, permissions: ['events:read'] });
    secrets.push(made.body.data.key as string);
    await api.send('POST', '/v1/events/emit', {
      event_type: 'twitch:cheer',
      platform: 'twitch',
      raw: { note: CANARY },
    });
    await api.gql(`{ events(filter: {search: "${CANARY}"}) { total } }`);
    await api.gql(`{ ${CANARY.replaceAll('-', '_')} }`);
    await api.gql('query($s: Secret!) { me }', { s: CANARY });
    // webhooks: signed, forged, unreadable
    await vendors.shopify('orders/create', Buffer.from(`{"id":1,"email":"${CANARY}@example.com"}`));
    await vendors.trovo({ note: CANARY });
    await vendors.post('/v1/webhooks/kick', `{"secret":"${CANARY}"}`, { 'kick-event-signature': CANARY });
    const broken = Buffer.from(`<feed ${CANARY}`);
    const signature = createHmac('sha1', webhook_signing.youtube_secret).update(broken).digest('hex');
    secrets.push(signature);
    await vendors.post('/v1/webhooks/youtube', broken, { 'x-hub-signature': `sha1=${signature}` });
    // the socket: token in the address, payload in a broadcast
    const socket = await Client.open(server.ws_url, access_token);
    await socket.subscribe(`events:${credentials.account_id}`);
    socket.end();
    await new Promise<void>((resolve) => {
      const refused = new WebSocket(`${server.ws_url}?token=${overlay}`);
      refused.once('error', () => resolve());
      refused.once('close', () => resolve());
    });
    // a failure of our own: the database refuses the write, and says what was in it
    await server.database!.db.query(
      `alter table domain_events add constraint full_disk check (type <> 'api_key:created') not valid`,
    );
    const failed = await api.send(
      'POST',
      '/v1/api-keys',
      { label: CANARY, permissions: ['events:read'] },
      { 'x-correlation-id': 'the-failure', 'idempotency-key': `${CANARY}-${randomUUID()}` },
    );
    expect(failed.status).toBe(500);
    expect(await server.stop()).toBe(0);
    lines = server
      .output()
      .split('\n')
      .filter((line) => line.startsWith('{'))
      .map((line) => JSON.parse(line) as Record<string, unknown>);
  });
  afterAll(() => server?.dispose());

  test('shows none of them', () => {
    // The address of the live page, in development alone, holds a token by intent, for whoever started the server.
    const output = server.output().replace(/^lumio: live page at \S+$/m, '');
    expect(secrets.filter((secret) => secret !== '' && output.includes(secret))).toEqual([]);
    const told = output.split('\n').filter((line) => /token=(?!\[redacted\])/.test(line));
    expect(told).toEqual([]);
  });

  test('says all the same which requests there were, each with its correlation id', () => {
    const requests = lines.filter(({ msg }) => msg === 'request' || msg === 'request failed');
    expect(requests.length).toBeGreaterThan(15);
    expect(requests.filter(({ correlation_id }) => typeof correlation_id !== 'string')).toEqual([]);
    expect(requests).toEqual(
      expect.arrayContaining([expect.objectContaining({ method: 'GET', route: '/v1/events', status: '401' })]),
    );
    const ofWebhooks = lines.filter(({ msg }) => String(msg).startsWith('webhook '));
    expect(ofWebhooks.length).toBeGreaterThanOrEqual(2);
    expect(ofWebhooks.filter(({ correlation_id }) => typeof correlation_id !== 'string')).toEqual([]);
  });

  test('tells a failure by code and frames, under the request’s correlation id', () => {
    const mine = lines.filter(({ level, correlation_id }) => level !== 'debug' && correlation_id === 'the-failure');
    expect(mine.map(({ msg }) => msg)).toEqual(['a request failed']);
    const { error } = mine[0] as { error: { code: string; stack: string } };
    expect(error.code).toBe('23514');
    expect(error.stack).toMatch(/^ {4}at /m);
  });
});

describe('what is cut out of a line', () => {
  test('an error loses what it quotes, and keeps what it is', () => {
    const pg = Object.assign(new Error(`invalid input syntax for type json: "${CANARY}"`), {
      severity: 'ERROR',
      code: '22P02',
      detail: CANARY,
      where: CANARY,
    });
    const outer = new AggregateError([pg], 'all of them', { cause: pg });
    const told = JSON.stringify(loggedError(outer));
    expect(told).not.toContain(CANARY);
    expect(told).toContain('22P02');
    expect(told).toContain('all of them');
    for (const text of [CANARY, `{"a": ${CANARY}}`, `["${CANARY}" x`]) {
      let error: unknown;
      try {
        JSON.parse(text);
      } catch (caught) {
        error = caught;
      }
      expect(error).toBeInstanceOf(Error);
      expect(JSON.stringify(loggedError(error))).not.toContain('canary');
    }
  });

  test.each([
    ['/v1/ws?a=1&token=abc.def&b=2', '/v1/ws?a=1&token=[redacted]&b=2'],
    ['postgres://lumio:s3cret@db/lumio', 'postgres://[redacted]@db/lumio'],
    ['authorization: Bearer abcdef.ghi', 'authorization: [redacted]'],
    [`key lm_usr_${'a'.repeat(64)}!`, 'key [redacted]!'],
    ['lm_eyJhbGciOiJFZERTQSJ9.eyJzdWIiOiIxIn0.c2ln', '[redacted]'],
    ['nothing to hide', 'nothing to hide'],
  ])('%s', (line, clean) => expect(redact(line)).toBe(clean));
});
