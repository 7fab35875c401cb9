import { createServer, type IncomingHttpHeaders } from 'node:http';
import type { AddressInfo } from 'node:net';
import { WebSocket, type ClientOptions } from 'ws';
import type { Caller } from '../../access/authentication/caller';
import { unauthorized } from '../../access/authentication/caller';
import { anonymous } from '../../access/authentication/resolve';
import type { Revocation } from '../../access/authentication/revocations';
import { createPrometheusMetrics } from '../../engines/metrics/prometheus';
import type { Relay } from '../../engines/relay/port';
import { createLocalRelay } from '../../engines/relay/local';
import { LocalWakeups } from '../../engines/wakeups/local';
import { createRealtime, type Realtime, type RealtimeDeps } from '../../realtime/runtime/service';
import { CHANNELS } from '../../bin/areas';
import type { Family } from '../../realtime/runtime/channel/family';
import type { TestDatabase } from './database';
import { silentLog } from './log';
import { PATIENCE_MS } from './patience';

export const ACCOUNT = '0190a000-0000-7000-8000-000000000001';
export const OTHER_ACCOUNT = '0190a000-0000-7000-8000-000000000002';

export function caller(given: Partial<Caller> = {}): Caller {
  return {
    kind: 'jwt',
    user_id: 'u1',
    account_id: ACCOUNT,
    credential_id: 'c1',
    permissions: new Set(['events:read', 'events:create', 'chat:read', 'automations:read']),
    admin_permissions: new Set(),
    user_permissions: new Set(),
    rate_bucket: 'user:u1',
    rate_limit: null,
    expires_at: null,
    ...given,
  };
}

/** Every family there is; those of these prefixes say whose their channels are as given. */
export const familiesWith = (owners: Readonly<Record<string, NonNullable<Family['owner']>>>): readonly Family[] =>
  CHANNELS.map((family) => {
    const owner = owners[family.pattern.slice(0, family.pattern.indexOf(':'))];
    return owner ? { ...family, owner } : family;
  });

export interface RealtimeNode {
  url: string;
  realtime: Realtime;
  wakeups: LocalWakeups;
  relay: Relay;
  /** Token to caller; a token that is not there fails with UNAUTHORIZED, `expired` with TOKEN_EXPIRED. */
  callers: Map<string, Caller>;
  /** Flags that are off. */
  off: Set<string>;
  /** Credential ids that no longer hold. */
  ended: Set<string>;
  /** Credential id to what it grants now; one that is not there grants what it did. */
  current: Map<string, Caller>;
  revoke(revocation: Partial<Revocation>): void;
  metrics(): Promise<string>;
  stop(): Promise<void>;
}

/** Nothing is limited, where limits are not what is tested. */
export const UNCOUNTED = {
  wait: async () => null,
  pace: async () => 0,
  take: async () => true,
  giveBack: () => undefined,
};

const running = new Set<RealtimeNode>();
// A test that failed has not stopped its node, which would keep the run from ending.
afterAll(async () => {
  for (const node of running) await node.stop();
});

/** A realtime node on a real HTTP server and the test's database, with credentials that the test makes up. */
export async function realtimeNode(t: TestDatabase, given: Partial<RealtimeDeps> = {}): Promise<RealtimeNode> {
  const wakeups = new LocalWakeups();
  const relay = given.relay ?? createLocalRelay();
  const callers = new Map([['good', caller()]]);
  const off = new Set<string>();
  const ended = new Set<string>();
  const current = new Map<string, Caller>();
  const listeners = new Set<(revocation: Revocation) => void>();
  const prometheus = createPrometheusMetrics({});
  const realtime = createRealtime({
    families: CHANNELS,
    settings: { allowed_origins: ['https://app.example'], public_url: undefined, realtime: { resume_window: 600_000 } },
    db: t.db,
    wakeups,
    relay,
    log: silentLog,
    metrics: prometheus,
    epoch: 'epoch-1',
    version: '1.2.3',
    features: { enabled: async (flag) => !off.has(flag) },
    counts: UNCOUNTED,
    slots: UNCOUNTED,
    revalidate: async (held) => {
      if (held.credential_id !== null && ended.has(held.credential_id)) return unauthorized;
      return { caller: current.get(held.credential_id ?? '') ?? held, failure: null };
    },
    on_revoked: (listener) => {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    resolve: async ({ authorization, query_token, ip }) => {
      const token = authorization?.replace('Bearer ', '') ?? query_token;
      if (token === undefined) return { caller: anonymous(ip), failure: null };
      const found = callers.get(token);
      return found
        ? { caller: found, failure: null }
        : { caller: caller(), failure: token === 'expired' ? 'TOKEN_EXPIRED' : 'UNAUTHORIZED' };
    },
    ...given,
  });
  const http = createServer((_req, res) => res.end());
  http.on('upgrade', (req, socket, head) => realtime.handleUpgrade(req, socket, head));
  await new Promise<void>((resolve) => http.listen(0, '127.0.0.1', resolve));
  const node: RealtimeNode = {
    url: `ws://127.0.0.1:${(http.address() as AddressInfo).port}/v1/ws`,
    realtime,
    wakeups,
    relay,
    callers,
    off,
    ended,
    current,
    revoke: (revocation) =>
      listeners.forEach((listener) =>
        listener({ credential_id: null, user_id: null, account_id: null, ...revocation }),
      ),
    metrics: () => prometheus.render(),
    async stop() {
      if (!running.delete(node)) return;
      await realtime.stop(500);
      http.closeAllConnections();
      await new Promise((resolve) => http.close(resolve));
    },
  };
  running.add(node);
  return node;
}

/** Stores messages as a projector would: one transaction, then the wake-up. */
export async function publish(
  t: TestDatabase,
  node: RealtimeNode,
  channel: string,
  data: readonly unknown[],
  event_type = 'kick:follower',
): Promise<void> {
  await t.db.query('select outbox_write($1, $2, $3)', [
    data.map(() => channel),
    data.map(() => event_type),
    data.map((item) => JSON.stringify(item)),
  ]);
  node.wakeups.notify('outbox');
}

export interface ServerMessage {
  type: string;
  id?: string;
  channel?: string;
  event_type?: string;
  code?: string;
  message?: string;
  recovered?: boolean;
  session_id?: string;
  server_version?: string;
  data?: Payload;
}

/** `data` of the messages that tests publish. */
export interface Payload {
  n: number;
  [key: string]: unknown;
}

/** A client that keeps all it got, and waits for what it expects with a deadline. */
export class Client {
  readonly messages: ServerMessage[] = [];
  close_code: number | null = null;
  close_reason = '';
  private readonly watchers = new Set<() => void>();

  private constructor(readonly ws: WebSocket) {
    ws.on('message', (data) => {
      this.messages.push(JSON.parse(data.toString()) as ServerMessage);
      this.changed();
    });
    ws.on('close', (code, reason) => {
      this.close_code = code;
      this.close_reason = reason.toString();
      this.changed();
    });
    ws.on('error', () => this.changed());
  }

  /** Connected, and welcomed. */
  static async open(url: string, token: string | null = 'good', options: ClientOptions = {}): Promise<Client> {
    const client = new Client(new WebSocket(token === null ? url : `${url}?token=${token}`, options));
    await client.until(() => client.messages.length > 0, 'welcome');
    return client;
  }

  private changed(): void {
    for (const watcher of this.watchers) watcher();
  }

  send(message: unknown): void {
    this.ws.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  async until(condition: () => boolean, what: string, ms = PATIENCE_MS): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const watch = (): void => {
        if (!condition()) return;
        clearTimeout(timer);
        this.watchers.delete(watch);
        resolve();
      };
      const timer = setTimeout(() => {
        this.watchers.delete(watch);
        reject(
          new Error(
            `waited in vain for ${what}; last: ${JSON.stringify(this.messages.slice(-3)).slice(0, 600)} close ${this.close_code}`,
          ),
        );
      }, ms);
      this.watchers.add(watch);
    });
  }

  /** The first message after `from` that matches. */
  async next(match: (message: ServerMessage) => boolean, what: string, from = 0): Promise<ServerMessage> {
    await this.until(() => this.messages.slice(from).some(match), what);
    return this.messages.slice(from).find(match)!;
  }

  /** Sends, and resolves with the first answer of one of these types (of this channel, where one is given). */
  async ask(
    message: { type: string; channel?: string; [key: string]: unknown },
    ...types: string[]
  ): Promise<ServerMessage> {
    const from = this.messages.length;
    this.send(message);
    return this.next((answer) => types.includes(answer.type), types.join(' or '), from);
  }

  subscribe(channel: string, since?: string): Promise<ServerMessage> {
    return this.ask({ type: 'subscribe', channel, ...(since === undefined ? {} : { since }) }, 'subscribed', 'error');
  }

  /** `data` of the channel's messages, in the order they came. */
  events(channel: string): Payload[] {
    return this.messages
      .filter((message) => message.channel === channel && message.data !== undefined)
      .map((message) => message.data!);
  }

  async closed(): Promise<number> {
    await this.until(() => this.close_code !== null, 'the close');
    return this.close_code!;
  }

  end(): void {
    this.ws.terminate();
  }
}

/** The HTTP answer to an upgrade that is refused. */
export function refused(
  url: string,
  options: ClientOptions = {},
): Promise<{ status: number; body: { error: string; message: string }; headers: IncomingHttpHeaders }> {
  return new Promise((resolve, reject) => {
    const ws = new WebSocket(url, options);
    ws.on('error', () => undefined);
    ws.on('open', () => reject(new Error('it was let in')));
    ws.on('unexpected-response', (_req, res) => {
      let text = '';
      res.on('data', (chunk: Buffer) => (text += chunk.toString()));
      res.on('end', () =>
        resolve({
          status: res.statusCode!,
          body: JSON.parse(text) as { error: string; message: string },
          headers: res.headers,
        }),
      );
    });
  });
}
