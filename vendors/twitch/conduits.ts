import { z } from 'zod';
import { bodyAs, bodyOf } from '../http/body';
import { type HttpAnswer, type HttpClients, HttpFailed, type HttpRequest } from '../http/port';
import { callsLeft, limitOrRefusal } from './limit';
import type { OAuthApp } from '../oauth/port';
import { AppTokens } from '../oauth/app-token';
import type { ConduitShard, ConduitSubscriptionAnswer, TwitchConduits } from './port';
import { readTime } from '../../lib/time/vendor-times';

export interface ConduitsOptions {
  api_url: string;
  id_url: string;
}

const Conduits = z.object({ data: z.array(z.object({ id: z.string(), shard_count: z.number() })) });
const cursor = z.object({ cursor: z.string().nullish() }).nullish();
const time = z.string().max(64).nullish();
const Shard = z.object({
  id: z.union([z.string(), z.number()]).transform(String),
  status: z.string(),
  transport: z.object({ session_id: z.string().nullish(), disconnected_at: time }).nullish(),
});
const Shards = z.object({ data: z.array(Shard), pagination: cursor });
const Assigned = z.object({
  data: z.array(Shard).default([]),
  errors: z
    .array(z.object({ id: z.unknown(), message: z.string().default(''), code: z.string().nullish() }))
    .default([]),
});
const Subscription = z.object({
  id: z.string(),
  status: z.string(),
  type: z.string(),
  condition: z.record(z.string(), z.unknown()),
  created_at: time,
  transport: z.object({ method: z.string(), conduit_id: z.string().nullish() }),
});
const Subscriptions = z.object({ data: z.array(Subscription), pagination: cursor });
const Made = z.object({
  data: z.array(z.object({ id: z.string(), created_at: time })).min(1),
});
const Refused = z.object({ message: z.string().default('') });

const CALL_MS = 8_000;
/** Pages of shards that are read: 2,000 shards are more than any deployment has workers. */
const MAX_PAGES = 20;

/** Twitch's conduits over Helix. */
export function createTwitchConduits(http: HttpClients, { api_url, id_url }: ConduitsOptions): TwitchConduits {
  const client = http.client('twitch-api', [new URL(api_url).host, new URL(id_url).host]);
  const tokens = new AppTokens(client, id_url);

  async function once(app: OAuthApp, path: string, request: Omit<HttpRequest, 'url' | 'headers'>): Promise<HttpAnswer> {
    const authorization = `Bearer ${await tokens.token(app)}`;
    const headers = { authorization, 'client-id': app.client_id, 'content-type': 'application/json' };
    return client.call({ deadline_ms: CALL_MS, ...request, url: `${api_url}/helix/eventsub/${path}`, headers });
  }

  /** Asked with a new token where the kept one is refused. @throws HttpFailed when the new one is refused as well */
  async function call(app: OAuthApp, path: string, request: Omit<HttpRequest, 'url' | 'headers'>): Promise<HttpAnswer> {
    let answer = await once(app, path, request);
    if (answer.status !== 401) return answer;
    tokens.forget(app);
    answer = await once(app, path, request);
    return answer.status === 401 ? failed(answer) : answer;
  }

  const failed = ({ status, retry_after_ms }: HttpAnswer): never => {
    throw new HttpFailed(new URL(api_url).hostname, status, retry_after_ms);
  };
  const isGood = ({ status }: HttpAnswer): boolean => status >= 200 && status < 300;
  const read = <T>(answer: HttpAnswer, shape: z.ZodType<T>): T =>
    isGood(answer) ? bodyOf(answer, shape, api_url) : failed(answer);

  return {
    async list(app) {
      return read(await call(app, 'conduits', { method: 'GET' }), Conduits).data;
    },

    async make(app, shard_count) {
      const [conduit] = read(
        // A second one must never follow from an answer that got lost.
        await call(app, 'conduits', { method: 'POST', body: JSON.stringify({ shard_count }), repeatable: false }),
        Conduits,
      ).data;
      if (conduit === undefined) throw new HttpFailed(new URL(api_url).hostname, 502);
      return conduit;
    },

    async remove(app, id) {
      const query = new URLSearchParams({ id });
      const answer = await call(app, `conduits?${query.toString()}`, { method: 'DELETE' });
      if (!isGood(answer) && answer.status !== 404) failed(answer);
    },

    async resize(app, conduit) {
      const answer = await call(app, 'conduits', { method: 'PATCH', body: JSON.stringify(conduit), repeatable: true });
      return answer.status === 404 ? false : isGood(answer) || failed(answer);
    },

    async shards(app, conduit_id) {
      const shards: ConduitShard[] = [];
      let after: string | null | undefined;
      for (let page = 0; page < MAX_PAGES; page += 1) {
        const query = new URLSearchParams({ conduit_id, ...(after && { after }) });
        const answer = await call(app, `conduits/shards?${query.toString()}`, { method: 'GET' });
        if (answer.status === 404) return null;
        const { data, pagination } = read(answer, Shards);
        shards.push(...data.map(shardOf));
        after = pagination?.cursor;
        if (!after || data.length === 0) break;
      }
      return shards;
    },

    async assign(app, { conduit_id, shard, session_id }, signal) {
      const transport = { method: 'websocket', session_id };
      const body = JSON.stringify({ conduit_id, shards: [{ id: shard, transport }] });
      const answer = await call(app, 'conduits/shards', { method: 'PATCH', body, repeatable: true, signal });
      if (answer.status === 404) return false;
      const { errors } = read(answer, Assigned);
      if (errors.length > 0) throw new HttpFailed(new URL(api_url).hostname, 400);
      return true;
    },

    async subscribe(app, { type, version, condition, conduit_id }, signal) {
      const body = JSON.stringify({ type, version, condition, transport: { method: 'conduit', conduit_id } });
      // Made twice it is answered with 409. A full bucket pauses all of a channel's calls, not this one alone.
      const asked = { method: 'POST', body, repeatable: true, repeat_limited: false, signal } as const;
      const answer = await call(app, 'subscriptions', asked);
      if (answer.status >= 500) failed(answer);
      return answerOf(answer);
    },

    async subscriptions(app, { after, user_id }) {
      const query = new URLSearchParams({ first: '100', ...(after && { after }), ...(user_id && { user_id }) });
      const { data, pagination } = read(
        await call(app, `subscriptions?${query.toString()}`, { method: 'GET' }),
        Subscriptions,
      );
      return {
        subscriptions: data.map(({ id, type, condition, status, created_at, transport }) => ({
          ...{ id, type, condition, enabled: status === 'enabled', created_at: created_at ?? null },
          conduit_id: transport.method === 'conduit' ? (transport.conduit_id ?? null) : null,
        })),
        after: pagination?.cursor || null,
      };
    },

    async unsubscribe(app, id) {
      const query = new URLSearchParams({ id });
      const answer = await call(app, `subscriptions?${query.toString()}`, { method: 'DELETE' });
      if (!isGood(answer) && answer.status !== 404) failed(answer);
    },
  };
}

function shardOf({ id, status, transport }: z.output<typeof Shard>): ConduitShard {
  return {
    ...{ id, enabled: status === 'enabled', session_id: transport?.session_id ?? null },
    disconnected_at: readTime(transport?.disconnected_at),
  };
}

function answerOf(answer: HttpAnswer): ConduitSubscriptionAnswer {
  const { status } = answer;
  if (status === 409) return { kind: 'exists' };
  if (status >= 200 && status < 300) {
    const [made] = bodyOf(answer, Made, 'https://api.twitch.tv').data;
    return { kind: 'made', id: made!.id, created_at: made!.created_at ?? null, left: callsLeft(answer) };
  }
  const message = (bodyAs(answer, Refused)?.message ?? '').slice(0, 200);
  return limitOrRefusal(answer, message);
}
