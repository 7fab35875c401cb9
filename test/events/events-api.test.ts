import { randomUUID } from 'node:crypto';
import { PostgresDatabase } from '../../engines/postgres/pool';
import type { Row } from '../../engines/postgres/port';
import { Listener } from '../support/listener';
import { sharedServer, type MadeAccount, type SharedServer } from '../support/shared-server';

let server: SharedServer;
let me: MadeAccount;
let other: MadeAccount;
let db: PostgresDatabase;
beforeAll(async () => {
  server = await sharedServer();
  [me, other] = [await server.account(), await server.account()];
  db = new PostgresDatabase({ url: server.database_url, name: 'test', size: 1 });
});
afterAll(async () => {
  for (const listener of listeners) listener.close();
  await db?.close();
});

type Json = Row;
interface Answer {
  status: number;
  body: Json;
  text: string;
}

async function rest(method: string, path: string, body?: unknown, token = me.access_token): Promise<Answer> {
  const response = await fetch(server.base_url + path, {
    method,
    headers: {
      authorization: `Bearer ${token}`,
      ...(body === undefined ? {} : { 'content-type': 'application/json' }),
    },
    ...(body === undefined ? {} : { body: typeof body === 'string' ? body : JSON.stringify(body) }),
  });
  const text = await response.text();
  return { status: response.status, text, body: (text === '' ? {} : JSON.parse(text)) as Json };
}

async function graphql(query: string, variables: Json = {}, token = me.access_token): Promise<Json> {
  return (await rest('POST', '/v1/gql', { query, variables }, token)).body;
}

const listeners: Listener[] = [];
async function listen(): Promise<Listener> {
  const listener = await Listener.to(server.ws_url, me.access_token, `events:${me.account_id}`);
  listeners.push(listener);
  return listener;
}

describe('events over every protocol', () => {
  test('an emitted event is in the log when the answer comes, on the channel, and the same on REST and GraphQL', async () => {
    const listener = await listen();
    const sent = {
      event_type: 'custom:greeted',
      raw: { user_id: '42', text: 'hällo "you"' },
      external_id: randomUUID(),
    };
    const emitted = await rest('POST', '/v1/events/emit', sent);
    expect(emitted).toMatchObject({ status: 200, body: { success: true } });
    const record = emitted.body.event as Json;
    expect(record).toMatchObject({
      account_id: me.account_id,
      type: 'custom:greeted',
      platform: 'custom',
      external_id: sent.external_id,
      raw: sent.raw,
    });
    expect((await rest('GET', `/v1/events/${record.id}`)).body.data).toEqual(record);
    const message = await listener.next((m) => m.data?.id === record.id);
    expect(message).toMatchObject({ type: 'event', event_type: 'custom:greeted' });
    // `raw` is read over REST and GraphQL alone.
    const { raw: _raw, ...pushed } = record;
    expect(message.data).toEqual({ ...pushed, payload: sent.raw });
    const shown = await graphql(
      'query($id: UUID!) { event(id: $id) { id eventType platform externalId raw createdAt } }',
      {
        id: record.id,
      },
    );
    expect(shown).toEqual({
      data: {
        event: {
          id: record.id,
          eventType: 'custom:greeted',
          platform: 'custom',
          externalId: sent.external_id,
          raw: sent.raw,
          createdAt: record.created_at,
        },
      },
    });
    // The same external id again: the event that is there, and no second one.
    const again = await rest('POST', '/v1/events/emit', { ...sent, raw: { other: true } });
    expect(again.body.event).toEqual(record);
    const found = await rest('GET', '/v1/events?types=custom:greeted&userId=42');
    expect(found.body).toMatchObject({ data: [record], _meta: { total: 1, page: 1, limit: 25 } });
    listener.close();
  });

  test('every filter does the same on REST and GraphQL', async () => {
    const day = '2026-05-06';
    for (const [i, event_type] of ['filter:a', 'filter:b', 'other:a'].entries()) {
      await rest('POST', '/v1/events/emit', {
        event_type,
        raw: { user_id: `f${i}`, t: '50%' },
        created_at: `${day}T0${i}:00:00Z`,
      });
    }
    const filters: [string, Json][] = [
      ['types=filter:a,filter:b', { types: ['filter:a', 'filter:b'] }],
      ['platform=filter,other', { platform: 'filter,other' }],
      ['user_id=f1', { userId: 'f1' }],
      [`search=${encodeURIComponent('50%')}`, { search: '50%' }],
      [`from=${day}&to=${day}T02:00:00Z`, { from: day, to: `${day}T02:00:00Z` }],
      ['platform=filter&page=2&limit=1', { platform: 'filter', page: 2, limit: 1 }],
    ];
    const totals = [2, 3, 1, 3, 2, 2];
    for (const [i, [query, filter]] of filters.entries()) {
      const listed = await rest('GET', `/v1/events?${query}`);
      expect({ query, status: listed.status, total: listed.body._meta?.total }).toEqual({
        query,
        status: 200,
        total: totals[i],
      });
      const twin = await graphql(
        'query($f: EventFilterInput) { events(filter: $f) { items { id eventType } total } }',
        { f: filter },
      );
      expect(twin).not.toHaveProperty('errors');
      expect(twin.data.events).toEqual({
        items: (listed.body.data as Json[]).map((row) => ({ id: row.id, eventType: row.type })),
        total: totals[i],
      });
    }
  });

  test('an emitted event is pushed without contact data, and without a payload that is too long', async () => {
    const listener = await listen();
    const emit = async (raw: object) =>
      (await rest('POST', '/v1/events/emit', { event_type: 'shopify:order', raw })).body.event as Json;
    const order = { id: 7, email: 'ada@example.com', customer: { phone: '+491701234567', first_name: 'Ada' } };
    const emitted = await emit(order);
    expect(emitted.raw).toEqual(order);
    const message = await listener.next((m) => m.data?.id === emitted.id);
    expect(message.data).toMatchObject({ payload: { id: 7, customer: { first_name: 'Ada' } } });
    expect(JSON.stringify(message)).not.toMatch(/ada@|1701234567/);
    const long = await emit({ text: 'x'.repeat(900_000) });
    expect(await listener.next((m) => m.data?.id === long.id)).toMatchObject({ data: { payload: null } });
  });

  test('a great event is made once under its Idempotency-Key, its answer is kept as a reference, and its frame is small', async () => {
    const listener = await listen();
    const body = JSON.stringify({ event_type: 'custom:great', raw: { text: 'x'.repeat(100_000) } });
    const emit = async () => {
      const response = await fetch(`${server.base_url}/v1/events/emit`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${me.access_token}`,
          'content-type': 'application/json',
          'idempotency-key': 'great',
        },
        body,
      });
      return { event: ((await response.json()) as Json).event as Json, headers: response.headers };
    };
    const [first, again] = [await emit(), await emit()];
    expect(again.event).toEqual(first.event);
    expect(again.headers.get('idempotency-replayed')).toBe('true');
    const keys = 'select length(answer) as bytes from idempotency_keys where user_id = $1';
    const kept = await db.query<{ bytes: number }>(keys, [me.user_id]);
    expect(Math.max(...kept.map(({ bytes }) => bytes))).toBeLessThan(1_000);
    expect((await rest('GET', '/v1/events?types=custom:great')).body._meta.total).toBe(1);
    const frame = await listener.next((m) => m.data?.id === first.event.id);
    expect(JSON.stringify(frame).length).toBeLessThan(1_000);
    expect(frame.data.payload).toBeNull();
    listener.close();
  });

  test.each([
    ['swept', 'delete from platform_event_logs where id = $1 returning 1 as one'],
    ['erased', `update platform_event_logs set raw = '"[erased]"' where id = $1 returning 1 as one`],
  ])('a repetition after the event was %s has its id and no content', async (what, statement) => {
    const emit = async () => {
      const response = await fetch(`${server.base_url}/v1/events/emit`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${me.access_token}`,
          'content-type': 'application/json',
          'idempotency-key': what,
        },
        body: JSON.stringify({ event_type: `custom:${what}`, raw: { n: 1 } }),
      });
      return { status: response.status, body: (await response.json()) as Json };
    };
    const first = (await emit()).body.event as Json;
    expect(first.raw).toEqual({ n: 1 });
    expect(await db.query(statement, [first.id])).toHaveLength(1);
    const again = await emit();
    expect([again.status, again.body]).toEqual([200, { success: true, event: { ...first, raw: null } }]);
    const records = 'select 1 as one from broker_records where position($1::bytea in value) > 0';
    expect(await db.query(records, [Buffer.from(`custom:${what}`)])).toHaveLength(1);
  });

  test('beyond the bytes that the plan of the account has for a day nothing is emitted', async () => {
    const mine = await server.account();
    const emit = async (characters: number, type = 'custom:long') => {
      const response = await fetch(`${server.base_url}/v1/events/emit`, {
        method: 'POST',
        headers: { authorization: `Bearer ${mine.access_token}`, 'content-type': 'application/json' },
        body: JSON.stringify({ event_type: type, raw: { text: 'x'.repeat(characters) } }),
      });
      return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
    };
    const limit = `insert into account_limit_overrides (account_id, name, value, set_at)
                   values ($1, 'max_emitted_bytes_per_day', 1000, now()) returning 1 as one`;
    await db.query(limit, [mine.account_id]);
    expect((await emit(500)).status).toBe(200);
    const refused = await emit(500, 'custom:refused');
    const text = 'The account has emitted the bytes of its plan for this day (max_emitted_bytes_per_day)';
    expect([refused.status, refused.body]).toEqual([
      429,
      expect.objectContaining({ error: 'RATE_LIMIT_EXCEEDED', message: text }),
    ]);
    expect(Number(refused.headers.get('retry-after'))).toBeGreaterThan(0);
    expect((await rest('GET', '/v1/events?types=custom:refused', undefined, mine.access_token)).body._meta.total).toBe(
      0,
    );
    expect((await emit(100)).status).toBe(200);
    await db.query(`update emitted_bytes set day = day - 1 where account_id = $1 returning 1 as one`, [
      mine.account_id,
    ]);
    expect((await emit(900)).status).toBe(200);
  });

  test('test events and bot events are broadcast and never stored', async () => {
    const listener = await listen();
    const tested = await rest('POST', '/v1/events/test', { event_type: 'kick:follower', raw: { n: 1 } });
    expect(tested).toMatchObject({ status: 200, body: { success: true } });
    const { id } = tested.body.event as Json;
    expect(await listener.next((m) => m.data?.id === id)).toMatchObject({
      type: 'event',
      channel: `events:${me.account_id}`,
      event_type: 'kick:follower',
      data: { type: 'kick:follower', platform: 'kick', payload: { n: 1 } },
    });
    expect((await rest('GET', `/v1/events/${id}`)).status).toBe(404);
    // A payload that no message can carry is refused instead of being answered as sent.
    const large = { event_type: 'kick:follower', raw: { text: 'x'.repeat(48 * 1024) } };
    expect(await rest('POST', '/v1/events/test', large)).toMatchObject({
      status: 413,
      body: { error: 'BAD_REQUEST', message: 'raw of an event that is only broadcast has at most 49152 bytes' },
    });
    const bot = await graphql(
      `
        mutation ($a: ID!) {
          emitBotEvent(
            accountId: $a
            eventType: "twitch:raid"
            platform: "twitch"
            username: "ada"
            raw: { viewers: 5 }
          ) {
            success
            event {
              id
            }
          }
        }
      `,
      { a: me.account_id },
      server.credentials.system_key,
    );
    expect(bot).not.toHaveProperty('errors');
    expect(await listener.next((m) => m.data?.id === bot.data.emitBotEvent.event.id)).toMatchObject({
      data: { payload: { username: 'ada', viewers: 5 } },
    });
    const refused = await rest('POST', '/v1/events/emit-bot', {
      account_id: me.account_id,
      event_type: 'twitch:raid',
      platform: 'twitch',
      username: 'ada',
      raw: {},
    });
    expect(refused.status).toBe(403);
    const nobody = await graphql(
      'mutation { emitBotEvent(accountId: "01900000-0000-7000-8000-00000000dead", eventType: "a:b", platform: "a", username: "u", raw: {}) { success } }',
      {},
      server.credentials.system_key,
    );
    expect(nobody.errors).toMatchObject([{ message: 'Account not found', extensions: { code: 'NOT_FOUND' } }]);
    listener.close();
  });

  test('REST takes `type`, as events are read with, for `event_type`; GraphQL knows one name', async () => {
    const emitted = await rest('POST', '/v1/events/emit', { type: 'alias:one', raw: { n: 1 } });
    expect(emitted).toMatchObject({ status: 200, body: { event: { type: 'alias:one', raw: { n: 1 } } } });
    const { type, platform, raw, created_at } = emitted.body.event as Json;
    const again = await rest('POST', '/v1/events/emit', { type, platform, raw, created_at, external_id: randomUUID() });
    expect(again.body.event).toMatchObject({ type, platform, raw, created_at });
    expect((await rest('POST', '/v1/events/emit', { type: 'alias:one', event_type: 'alias:one' })).status).toBe(200);
    const both = await rest('POST', '/v1/events/emit', { type: 'alias:one', event_type: 'alias:two' });
    expect([both.status, both.body]).toEqual([
      400,
      {
        error: 'VALIDATION_ERROR',
        message: 'type: differs from event_type',
        details: { fields: [{ path: 'type', message: 'differs from event_type' }] },
      },
    ]);
    const twin = await graphql('mutation { emitEvent(input: {type: "alias:one"}) { success } }');
    expect(twin.errors[0].extensions.code).toBe('VALIDATION_ERROR');
    expect((await rest('GET', '/v1/events?types=alias:one,alias:two')).body._meta.total).toBe(3);
  });

  test('what the schema does not allow is refused with 400 and changes nothing', async () => {
    const future = new Date(Date.now() + 6 * 60_000).toISOString();
    const long_ago = new Date(Date.now() - 367 * 86_400_000).toISOString();
    for (const body of [
      {},
      { event_type: 'noprefix' },
      { event_type: `a:${'x'.repeat(99)}` },
      { event_type: 'bad:one', raw: [] },
      { event_type: 'bad:one', created_at: '2026-02-30T00:00:00Z' },
      { event_type: 'bad:one', created_at: future },
      { event_type: 'bad:one', created_at: long_ago },
      { event_type: 'bad:one', raw: { s: 'nul\u0000' } },
      { event_type: 'bad:one', surprise: 1 },
      // A number that a double cannot hold is refused rather than rounded.
      '{"event_type":"bad:one","raw":{"id":820982911946154508}}',
    ]) {
      expect({ body, status: (await rest('POST', '/v1/events/emit', body)).status }).toEqual({ body, status: 400 });
    }
    for (const query of [
      'from=2026-02-30',
      'to=never',
      'page=0',
      'limit=101',
      'from=2026-03-02&to=2026-03-01',
      'page=x',
    ]) {
      const answer = await rest('GET', `/v1/events?${query}`);
      expect({ query, status: answer.status, code: answer.body.error }).toEqual({
        query,
        status: 400,
        code: 'VALIDATION_ERROR',
      });
    }
    expect((await rest('GET', '/v1/events?platform=bad')).body._meta.total).toBe(0);
  });

  test('another account sees none of it', async () => {
    const emitted = await rest('POST', '/v1/events/emit', { event_type: 'mine:only' });
    expect((await rest('GET', `/v1/events/${emitted.body.event.id}`, undefined, other.access_token)).status).toBe(404);
    expect((await rest('GET', '/v1/events?types=mine:only', undefined, other.access_token)).body._meta.total).toBe(0);
  });
});
