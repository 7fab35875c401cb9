import { z } from 'zod';
import { bodyAs } from '../http/body';
import { type HttpAnswer, type HttpClients, HttpFailed, type HttpRequest } from '../http/port';
import { callsLeft, limitOrRefusal } from './limit';
import { openEventSub } from './eventsub';
import type { SubscriptionAnswer, Twitch, TwitchLogin } from './port';

export interface TwitchOptions {
  api_url: string;
  id_url: string;
  eventsub_url: string;
  /** For tests alone. */
  allow_loopback: boolean;
}

const Validated = z.object({ client_id: z.string(), user_id: z.string() });
const Page = z.object({ data: z.array(z.unknown()) });
const Made = z.object({
  data: z.array(z.object({ created_at: z.string().max(64).nullish() })).default([]),
  total_cost: z.number().nullish(),
  max_total_cost: z.number().nullish(),
});
const Refused = z.object({ message: z.string().default('') });

/** Pause before another socket of the same user and app is tried; a former holder keeps its own for 8 to 20 s. */
const TRANSPORTS_MS = 2_000;
const CALL_MS = 8_000;

/** Twitch over HTTP and WebSocket. */
export function createTwitch(http: HttpClients, options: TwitchOptions): Twitch {
  const { api_url, id_url } = options;
  const client = http.client('twitch-api', [new URL(api_url).host, new URL(id_url).host]);
  const helix = ({ token, client_id }: TwitchLogin) => ({ authorization: `Bearer ${token}`, 'client-id': client_id });
  const call = (request: HttpRequest) => client.call({ deadline_ms: CALL_MS, ...request });

  return {
    open: (listener, signal) =>
      openEventSub({ url: options.eventsub_url, allow_loopback: options.allow_loopback }, listener, signal),

    async subscribe(login, { type, version, condition, session_id }, signal) {
      const answer = await call({
        method: 'POST',
        url: `${api_url}/helix/eventsub/subscriptions`,
        headers: { ...helix(login), 'content-type': 'application/json' },
        body: JSON.stringify({ type, version, condition, transport: { method: 'websocket', session_id } }),
        // Twitch answers 409 for an existing subscription. An empty bucket pauses all calls of a link.
        repeatable: true,
        repeat_limited: false,
        signal,
      });
      if (answer.status >= 500) throw new HttpFailed(new URL(api_url).hostname, answer.status, answer.retry_after_ms);
      return subscriptionAnswer(answer);
    },

    async validate(token) {
      const headers = { authorization: `OAuth ${token}` };
      const answer = await call({ method: 'GET', url: `${id_url}/oauth2/validate`, headers });
      const { status, body, retry_after_ms } = answer;
      if (status === 401) return null;
      if (status !== 200) throw new HttpFailed(new URL(id_url).hostname, status, retry_after_ms);
      return bodyAs({ body }, Validated) ?? null;
    },

    async get(login, path, query) {
      const url = `${api_url}/helix/${path}?${new URLSearchParams(query).toString()}`;
      const { status, body } = await call({ method: 'GET', url, headers: helix(login) });
      if (status !== 200) return null;
      return bodyAs({ body }, Page)?.data ?? null;
    },
  };
}

function subscriptionAnswer(answer: HttpAnswer): SubscriptionAnswer {
  const { status } = answer;
  if (status === 409) return { kind: 'made', created_at: null, cost: null, left: callsLeft(answer) };
  if (status >= 200 && status < 300) {
    const made = bodyAs(answer, Made);
    const { total_cost: total, max_total_cost: most } = made ?? {};
    const cost = typeof total === 'number' && typeof most === 'number' ? { total, most } : null;
    return { kind: 'made', created_at: made?.data[0]?.created_at ?? null, cost, left: callsLeft(answer) };
  }
  if (status === 401) return { kind: 'unauthorised' };
  const message = (bodyAs(answer, Refused)?.message ?? '').slice(0, 200);
  // Another process or account has the user's sockets: as a rule a former holder, which leaves within seconds.
  if (status === 429 && /transports/i.test(message)) return { kind: 'limited', until: Date.now() + TRANSPORTS_MS };
  return limitOrRefusal(answer, message);
}
