import { randomUUID } from 'node:crypto';
import type { FakeAnswer, FakeCall } from './cloud';

export interface FakeSubscription {
  id: string;
  type: string;
  version: string;
  condition: Record<string, string>;
  created_at: string;
}

interface Shard {
  session_id: string | null;
  connected_at: string | null;
  disconnected_at: string | null;
  status: string;
}

export interface FakeConduit {
  id: string;
  shards: Shard[];
  /** By type and condition. */
  subscriptions: Map<string, FakeSubscription>;
  /** Shard that the next notification is for. */
  next: number;
}

/** What conduits need of Twitch around them. */
interface Around {
  now(): string;
  isConnected(session_id: string): boolean;
  send(session_id: string, message: object): void;
  /** Scopes that the owner of a channel has consented to; null when it has not connected the app. */
  consentOf(channel_id: string): ReadonlySet<string> | null;
  refusal(type: string, version: string): { status: number; message: string } | undefined;
}

const CHAT = ['user:read:chat', 'user:bot', 'channel:bot'];
/** Scopes that an app's token needs of the owner, by type or its beginning. */
const NEEDED: readonly (readonly [string, readonly string[]])[] = [
  ['channel.chat.', CHAT],
  ['channel.follow', ['moderator:read:followers']],
  ['channel.cheer', ['bits:read']],
  ['channel.channel_points_', ['channel:read:redemptions']],
  ['channel.moderate', ['moderator:read:blocked_terms', 'moderator:read:moderators', 'moderator:read:vips']],
  ['channel.ban', ['channel:moderate']],
  ['channel.unban', ['channel:moderate']],
  ['channel.hype_train.', ['channel:read:hype_train']],
  ['channel.poll.', ['channel:read:polls']],
  ['channel.prediction.', ['channel:read:predictions']],
  ['channel.goal.', ['channel:read:goals']],
  ['channel.ad_break.', ['channel:read:ads']],
  ['channel.suspicious_user.', ['moderator:read:suspicious_users']],
];
const MAX_CONDUITS = 5;
const PAGE = 100;
const NOT_FOUND: FakeAnswer = { status: 404, body: { error: 'Not Found', status: 404, message: 'conduit not found' } };

/** Conduits as Twitch speaks them: shards of sockets, subscriptions that outlive those, a notification to one shard. */
export class FakeConduits {
  readonly all = new Map<string, FakeConduit>();
  /** Most subscriptions that the app's bucket of calls lets through; the next one is answered with 429. */
  allowed = Infinity;
  /** Ids that lists of all subscriptions omit, as a page may that is read while others are made. */
  readonly unlisted = new Set<string>();
  /** Cursors whose page fails, and how many times more. */
  readonly failing = new Map<string, number>();
  /** Notifications that no shard received. */
  lost = 0;

  constructor(private readonly around: Around) {}

  /** Subscriptions to a channel, over all conduits. */
  of(channel_id: string): FakeSubscription[] {
    return [...this.all.values()].flatMap(({ subscriptions }) =>
      [...subscriptions.values()].filter(({ condition }) => Object.values(condition).includes(channel_id)),
    );
  }

  /** Shards that are connected. */
  get connected(): number {
    return [...this.all.values()].flatMap(({ shards }) => shards).filter(({ status }) => status === 'enabled').length;
  }

  list = (): FakeAnswer => ({ body: { data: [...this.all.values()].map(rowOf) } });

  make = ({ body }: FakeCall): FakeAnswer => {
    const { shard_count } = JSON.parse(body) as { shard_count: number };
    if (this.all.size >= MAX_CONDUITS) return { status: 429, body: { status: 429, message: 'Conduit limit exceeded' } };
    const conduit = { id: randomUUID(), shards: [], subscriptions: new Map(), next: 0 };
    this.all.set(conduit.id, conduit);
    resize(conduit, shard_count);
    return { body: { data: [rowOf(conduit)] } };
  };

  update = ({ body }: FakeCall): FakeAnswer => {
    const { id, shard_count } = JSON.parse(body) as { id: string; shard_count: number };
    const conduit = this.all.get(id);
    if (conduit === undefined) return NOT_FOUND;
    resize(conduit, shard_count);
    return { body: { data: [rowOf(conduit)] } };
  };

  remove = ({ query }: FakeCall): FakeAnswer => (this.all.delete(query.get('id') ?? '') ? { status: 204 } : NOT_FOUND);

  shards = ({ query }: FakeCall): FakeAnswer => {
    const conduit = this.all.get(query.get('conduit_id') ?? '');
    if (conduit === undefined) return NOT_FOUND;
    return { body: { data: conduit.shards.map((shard, n) => shardOf(shard, n)), pagination: {} } };
  };

  assign = ({ body }: FakeCall): FakeAnswer => {
    const asked = JSON.parse(body) as {
      conduit_id: string;
      shards: { id: string; transport: { method: string; session_id: string } }[];
    };
    const conduit = this.all.get(asked.conduit_id);
    if (conduit === undefined) return NOT_FOUND;
    const data: object[] = [];
    const errors: object[] = [];
    for (const { id, transport } of asked.shards) {
      const shard = conduit.shards[Number(id)];
      if (shard === undefined) {
        errors.push({ id, message: "The shard id is outside the conduit's range", code: 'invalid_parameter' });
      } else if (!this.around.isConnected(transport.session_id)) {
        errors.push({ id, message: 'session does not exist', code: 'invalid_parameter' });
      } else {
        const { session_id } = transport;
        Object.assign(shard, { session_id, connected_at: this.around.now(), disconnected_at: null, status: 'enabled' });
        data.push(shardOf(shard, Number(id)));
      }
    }
    return { status: 202, body: { data, errors } };
  };

  subscribe(asked: Omit<FakeSubscription, 'id' | 'created_at'> & { conduit_id: string }): FakeAnswer {
    const { conduit_id, type, version, condition } = asked;
    if (this.allowed <= 0) return { status: 429, headers: { 'retry-after': '1' }, body: { status: 429, message: '' } };
    this.allowed -= 1;
    const refusal = this.around.refusal(type, version);
    if (refusal) return { status: refusal.status, body: { error: 'Refused', ...refusal } };
    const conduit = this.all.get(conduit_id);
    if (conduit === undefined) return { status: 400, body: { status: 400, message: 'conduit does not exist' } };
    const consents = Object.values(condition).map((id) => this.around.consentOf(id));
    const needed = NEEDED.find(([begin]) => type.startsWith(begin))?.[1] ?? [];
    if (consents.some((consent) => consent === null || needed.some((scope) => !consent.has(scope))))
      return { status: 403, body: { status: 403, message: 'subscription missing proper authorization' } };
    const key = `${type} ${JSON.stringify(condition)}`;
    if (conduit.subscriptions.has(key)) return { status: 409, body: { status: 409, message: 'already exists' } };
    const subscription = { id: randomUUID(), type, version, condition, created_at: this.around.now() };
    conduit.subscriptions.set(key, subscription);
    const data = [listed(conduit, subscription)];
    return { status: 202, body: { data, total: 1, total_cost: 0, max_total_cost: 10_000 } };
  }

  /** A page of all subscriptions, or of those that name a user. */
  subscriptions = ({ query }: FakeCall): FakeAnswer => {
    const user = query.get('user_id');
    const failures = this.failing.get(query.get('after') ?? '') ?? 0;
    if (failures > 0) {
      this.failing.set(query.get('after') ?? '', failures - 1);
      return { status: 500, body: { status: 500, message: 'internal error' } };
    }
    const all = [...this.all.values()].flatMap((conduit) =>
      [...conduit.subscriptions.values()]
        .filter(({ id, condition }) =>
          user === null ? !this.unlisted.has(id) : Object.values(condition).includes(user),
        )
        .map((one) => listed(conduit, one)),
    );
    const from = Number(query.get('after') ?? 0);
    const to = from + Math.min(Number(query.get('first') ?? 20), PAGE);
    const pagination = to < all.length ? { cursor: String(to) } : {};
    return { body: { data: all.slice(from, to), total: all.length, total_cost: 0, max_total_cost: 9, pagination } };
  };

  unsubscribe = ({ query }: FakeCall): FakeAnswer => {
    for (const { subscriptions } of this.all.values())
      for (const [key, { id }] of subscriptions) if (id === query.get('id')) subscriptions.delete(key);
    return { status: 204 };
  };

  /** Sends it to one shard, and where that is disconnected to one other; answers with how many received it. */
  deliver(matches: (subscription: FakeSubscription) => boolean, message: (of: FakeSubscription) => object): number {
    let received = 0;
    for (const conduit of this.all.values()) {
      const subscription = [...conduit.subscriptions.values()].find(matches);
      if (subscription === undefined) continue;
      const { shards } = conduit;
      const first = conduit.next % shards.length;
      conduit.next += 1;
      const tried = [shards[first]!, ...shards.filter((one, n) => n !== first && one.status === 'enabled').slice(0, 1)];
      const shard = tried.find(({ session_id }) => session_id !== null && this.around.isConnected(session_id));
      if (shard === undefined) this.lost += 1;
      else {
        this.around.send(shard.session_id!, message(subscription));
        received += 1;
      }
    }
    return received;
  }

  /** Ends subscriptions to a channel, each reported over one shard. */
  revoke(channel_id: string, status: string, message: (subscription: object) => object, type?: string): void {
    for (const conduit of this.all.values()) {
      for (const [key, subscription] of conduit.subscriptions) {
        if (!Object.values(subscription.condition).includes(channel_id)) continue;
        if (type !== undefined && subscription.type !== type) continue;
        conduit.subscriptions.delete(key);
        const shard = conduit.shards.find((one) => one.status === 'enabled');
        if (shard) this.around.send(shard.session_id!, message({ ...listed(conduit, subscription), status }));
      }
    }
  }

  /** Whether a socket receives for a shard: it needs no subscription of its own. */
  uses(session_id: string): boolean {
    return [...this.all.values()].some(({ shards }) => shards.some((shard) => shard.session_id === session_id));
  }

  /** The session goes on over another socket. */
  moved(before: string, session_id: string): void {
    for (const { shards } of this.all.values())
      for (const shard of shards) if (shard.session_id === before) shard.session_id = session_id;
  }

  disconnected(session_id: string): void {
    for (const { shards } of this.all.values())
      for (const shard of shards)
        if (shard.session_id === session_id)
          Object.assign(shard, { status: 'websocket_disconnected', disconnected_at: this.around.now() });
  }
}

const rowOf = ({ id, shards }: FakeConduit) => ({ id, shard_count: shards.length });

function resize({ shards }: FakeConduit, count: number): void {
  shards.length = Math.min(shards.length, count);
  while (shards.length < count)
    shards.push({ session_id: null, connected_at: null, disconnected_at: null, status: 'websocket_disconnected' });
}

function shardOf({ status, session_id, connected_at, disconnected_at }: Shard, n: number): object {
  return { id: String(n), status, transport: { method: 'websocket', session_id, connected_at, disconnected_at } };
}

const listed = ({ id: conduit_id }: FakeConduit, subscription: FakeSubscription): object => ({
  ...subscription,
  ...{ status: 'enabled', cost: 0, transport: { method: 'conduit', conduit_id } },
});
