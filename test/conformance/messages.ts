import { LIMITS } from '../../realtime/runtime/channel/limits';
import { until } from '../support/projections';
import { ACCOUNT, OTHER_ACCOUNT, publish, realtimeNode, type ServerMessage } from '../support/realtime';
import {
  anonymous,
  as,
  big,
  bound,
  broadcastAs,
  EVENTS,
  may,
  nextEvent,
  node,
  open,
  real,
  stalled,
  verdict,
  world,
} from './house';
import type { Proofs, Row } from './spec';

/** The message types of families are as the row says, with `channel` and `event_type` beside (rulings c31, c32). */
async function serverMessage({ type, fields }: Row, channel: string, permission: string): Promise<void> {
  const client = await may(permission);
  await client.subscribe(channel);
  await publish(world.t, node, channel, [{ n: 1 }]);
  const sent: ServerMessage = await nextEvent(client);
  expect(sent.type).toBe(type);
  expect(Object.keys(sent)).toEqual(expect.arrayContaining([...fields, 'channel', 'event_type']));
}

/** The error, and the session goes on. */
export async function tooLarge(bytes = LIMITS.frame_bytes): Promise<void> {
  const client = await open();
  const padded = (length: number) => {
    const empty = JSON.stringify({ type: 'ping', pad: '' });
    return JSON.stringify({ type: 'ping', pad: 'x'.repeat(length - empty.length) });
  };
  client.send(padded(bytes));
  await client.next(({ type }) => type === 'pong', 'the answer to exactly as much');
  client.send(padded(bytes + 1));
  await client.next(({ code }) => code === 'MESSAGE_TOO_LARGE', 'the error');
  await client.ask({ type: 'ping' }, 'pong');
}

/** What either side says, and the errors. */
export const MESSAGES: Record<string, Proofs> = {
  client_messages: {
    async subscribe() {
      const client = await open();
      const first = await client.subscribe(EVENTS);
      expect(first).toMatchObject({ type: 'subscribed', channel: EVENTS });
      expect(await client.subscribe(EVENTS)).toEqual(first);
      await publish(world.t, node, EVENTS, [{ n: 1 }]);
      await nextEvent(client);
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.events(EVENTS)).toHaveLength(1);
      expect(await client.subscribe(`events:${OTHER_ACCOUNT}`)).toMatchObject({ type: 'error' });
    },
    async unsubscribe() {
      const [client, witness] = [await open(), await open()];
      for (const one of [client, witness]) await one.subscribe(EVENTS);
      const message = { type: 'unsubscribe', channel: EVENTS };
      expect(await client.ask(message, 'unsubscribed')).toEqual({ type: 'unsubscribed', channel: EVENTS });
      await publish(world.t, node, EVENTS, [{ n: 1 }]);
      await nextEvent(witness);
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.events(EVENTS)).toEqual([]);
    },
    async broadcast({ write_permissions, forwarded_as }) {
      expect(forwarded_as).toBe("{type: 'event', data: <payload>}");
      for (const [family, permission] of Object.entries(write_permissions as Record<string, string>)) {
        const channel = `${family}:${ACCOUNT}`;
        const [listener, writer] = [await may(`${family}:read`), await may(permission)];
        await listener.subscribe(channel);
        writer.send({ type: 'broadcast', channel, payload: '{"n":1}' });
        expect(await nextEvent(listener)).toEqual({ type: 'event', channel, event_type: 'broadcast', data: { n: 1 } });
        expect((await broadcastAs(writer, channel, '{')).code).toBe('INVALID_FORMAT');
        expect((await broadcastAs(listener, channel)).code).toBe('UNAUTHORIZED');
        expect((await broadcastAs(await anonymous(), channel)).code).toBe('UNAUTHORIZED');
      }
    },
    async ping() {
      expect(await (await open()).ask({ type: 'ping' }, 'pong')).toEqual({ type: 'pong' });
    },
  },

  server_messages: {
    async welcome() {
      const client = await open();
      await client.ask({ type: 'ping' }, 'pong');
      const of = client.messages.filter(({ type }) => type === 'welcome');
      expect(of).toEqual([{ type: 'welcome', session_id: expect.any(String), server_version: '1.2.3' }]);
      expect(client.messages[0]).toBe(of[0]);
    },
    async subscribed() {
      expect(await (await open()).subscribe(EVENTS)).toMatchObject({ type: 'subscribed', channel: EVENTS });
    },
    async unsubscribed() {
      const answer = await (await open()).ask({ type: 'unsubscribe', channel: EVENTS }, 'unsubscribed');
      expect(answer).toEqual({ type: 'unsubscribed', channel: EVENTS });
    },
    async pong() {
      expect(await (await open()).ask({ type: 'ping' }, 'pong')).toEqual({ type: 'pong' });
    },
    async error() {
      const client = await open();
      client.send('{');
      const error = await client.next(({ type }) => type === 'error', 'the error');
      expect(error).toEqual({ type: 'error', message: expect.any(String), code: 'INVALID_FORMAT' });
    },
    event: (row) => serverMessage(row, EVENTS, 'events:read'),
    'spotify:now-playing': (row) => serverMessage(row, `spotify:${ACCOUNT}`, 'spotify:read'),
    'chat:message': (row) => serverMessage(row, `chat:${ACCOUNT}`, 'chat:read'),
    automation: (row) => serverMessage(row, `automations:${ACCOUNT}`, 'automations:read'),
  },

  error_codes: {
    async UNAUTHORIZED() {
      const client = await open();
      const stranger = await as({ account_id: OTHER_ACCOUNT });
      expect(await verdict(client, `history:${ACCOUNT}`)).toBe('UNAUTHORIZED');
      for (const one of [stranger, await anonymous()])
        expect(await verdict(one, `presence:${EVENTS}`)).toBe('UNAUTHORIZED');
      expect(await verdict(client, 'presence:widget:nowhere')).toBe('UNAUTHORIZED');
    },
    async FEATURE_DISABLED() {
      node.off.add('feature:events');
      expect(await verdict(await open(), EVENTS)).toBe('FEATURE_DISABLED');
      expect(await verdict(await as({ account_id: OTHER_ACCOUNT }), EVENTS)).toBe('UNAUTHORIZED');
    },
    async TOKEN_REVOKED() {
      for (const kind of ['overlay', 'shared_overlay'] as const) {
        const { id, token } = await bound(kind, 'overlay:gone');
        const client = await open(token, real);
        expect(await verdict(client, 'overlay:gone')).toBe('subscribed');
        await world.t.db.query('delete from bound_tokens where id = $1', [id]);
        expect(await client.closed()).toBe(4401);
        expect(client.close_reason).toBe('TOKEN_REVOKED');
        expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_REVOKED' });
      }
    },
    async TOKEN_EXPIRED() {
      const { token } = await bound('shared_overlay', 'overlay:brief', Date.now() + 2_500);
      const client = await open(token, real);
      expect(await client.closed()).toBe(4401);
      expect(client.messages.at(-1)).toMatchObject({ type: 'error', code: 'TOKEN_EXPIRED' });
    },
    async SUBSCRIBE_FAILED() {
      const away = () => Promise.reject(new Error('no database'));
      const broken = await realtimeNode(world.t, { features: { enabled: away } });
      expect(await verdict(await open('good', broken), EVENTS)).toBe('SUBSCRIBE_FAILED');
      await broken.stop();
    },
    async CHANNEL_DROPPED({ closes_session }) {
      const slow = await stalled(node, EVENTS);
      await publish(world.t, node, EVENTS, big(900));
      await until(async () => /channels_dropped_total [1-9]/.test(await node.metrics()));
      slow.ws.resume();
      await slow.next(({ code }) => code === 'CHANNEL_DROPPED', 'the error');
      expect(closes_session).toBe(false);
      expect(await verdict(slow, EVENTS)).toBe('subscribed');
    },
    async INVALID_FORMAT() {
      const client = await open();
      for (const text of ['{', '{"type":"shout"}', '{"type":"subscribe"}', '[]']) {
        const from = client.messages.length;
        client.send(text);
        expect((await client.next(({ type }) => type === 'error', 'the error', from)).code).toBe('INVALID_FORMAT');
      }
    },
    MESSAGE_TOO_LARGE: () => tooLarge(),
  },

  error_rules: {
    async 'A failed permission subscribe yields `error` with `code: UNAUTHORIZED` and the channel is not registered.'() {
      const [client, witness] = [await may('chat:read'), await open()];
      expect(await verdict(client, EVENTS)).toBe('UNAUTHORIZED');
      await witness.subscribe(EVENTS);
      await publish(world.t, node, EVENTS, [{ n: 1 }]);
      await nextEvent(witness);
      await client.ask({ type: 'ping' }, 'pong');
      expect(client.events(EVENTS)).toEqual([]);
    },
    'Frames over 64 KiB are rejected with `MESSAGE_TOO_LARGE`.': () => tooLarge(),
  },
};
