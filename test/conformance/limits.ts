import { LIMITS } from '../../realtime/runtime/channel/limits';
import { uuid } from '../support/identity';
import { timeLimit } from '../support/patience';
import { until } from '../support/projections';
import { Client, publish, realtimeNode } from '../support/realtime';
import { sharedServer } from '../support/shared-server';
import { as, big, bound, clients, EVENTS, open, real, stalled, world } from './house';
import { tooLarge } from './messages';
import type { Proofs, Row } from './spec';

/** The heartbeat, the limits, and what is told of them. */
export const LIMITS_AND_HEALTH: Record<string, Proofs> = {
  heartbeat_and_limits: {
    async silence_timeout_seconds({ value }) {
      expect(value).toBe(30);
      const brief = await realtimeNode(world.t, { windows: { silence_ms: 2_000, stall_ms: 30_000, beat_ms: 100 } });
      const [silent, talking, control] = [
        await open('good', brief),
        await open('good', brief),
        await open('good', brief),
      ];
      let pings = 0;
      silent.ws.on('ping', () => (pings += 1));
      const timer = setInterval(() => {
        talking.send({ type: 'ping' });
        control.ws.ping('still here');
      }, 100);
      const answered = new Promise<string>((pong) => control.ws.once('pong', (data: Buffer) => pong(data.toString())));
      expect(await silent.closed()).toBe(4408);
      expect([pings, await answered]).toEqual([0, 'still here']);
      for (const client of [talking, control]) await client.ask({ type: 'ping' }, 'pong');
      clearInterval(timer);
      await brief.stop();
    },
    async heartbeat_tick_seconds({ value }) {
      expect([LIMITS.heartbeat_ms, LIMITS.silence_ms]).toEqual([value * 1_000, 6 * value * 1_000]);
    },
    async outbound_send_window_seconds({ value }) {
      expect(LIMITS.stall_ms).toBe(value * 1_000);
      const brief = await realtimeNode(world.t, { windows: { silence_ms: 30_000, stall_ms: 500, beat_ms: 100 } });
      await stalled(brief, EVENTS);
      await publish(world.t, brief, EVENTS, big(900));
      await until(() => brief.realtime.stats().sessions === 0);
      await brief.stop();
    },
    async outbound_queue_messages({ value }) {
      expect(LIMITS.queue_messages).toBe(value);
    },
    max_text_frame_bytes: ({ value }) => tooLarge(value),
    async token_revalidation_db_seconds({ value }) {
      expect(LIMITS.revalidate_ms).toBe(value * 1_000);
      // Nobody tells of it: the database alone knows.
      const { id, token } = await bound('shared_overlay', 'overlay:quiet');
      const client = await open(token, real);
      await world.t.db.query('delete from bound_tokens where id = $1', [id]);
      expect(await client.closed()).toBe(4401);
    },
    async expiry_check_seconds() {
      const expires_at = Date.now() + 2_000;
      const client = await as({ kind: 'shared_overlay', expires_at });
      expect(await client.closed()).toBe(4401);
      // With the next check of the credential itself it would be half a minute.
      expect(Date.now() - expires_at).toBeLessThan(1_000 + timeLimit(1_000));
    },
  },

  observability: {
    async observability() {
      const server = await sharedServer();
      const read = async () =>
        ((await (await fetch(`${server.base_url}/v1/health`)).json()) as Row).data.websocket as Row;
      const before = await read();
      const client = await Client.open(server.ws_url, null);
      clients.push(client);
      await client.subscribe(`login-assignments:${uuid(71)}`);
      const now = await read();
      expect(Object.keys(now).sort()).toEqual(['channels', 'sessions']);
      expect([now.sessions > before.sessions, now.channels > before.channels]).toEqual([true, true]);
    },
  },
};
