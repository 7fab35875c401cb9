import type { IncomingMessage } from 'node:http';
import type { Socket } from 'node:net';
import type { Duplex } from 'node:stream';
import { v7 as uuidv7 } from 'uuid';
import { WebSocket, WebSocketServer, type RawData, type ServerOptions } from 'ws';
import type { Caller } from '../../access/caller';
import type { Counts } from '../../access/counts';
import { failureBucket, upgradeBucket } from '../../access/rate-buckets';
import type { CallerResolver } from '../../access/resolve';
import type { Revocation } from '../../access/revocations';
import type { Settings } from '../../kernel/settings';
import { ApiError } from '../../kernel/errors';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Queryable } from '../../engines/postgres/port';
import type { Presence } from '../../engines/presence/port';
import type { Relay } from '../../engines/relay/port';
import { NO_TRACING, type Tracing } from '../../engines/tracing/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { Families, type ChannelServices, type Family } from './family';
import { Gates, type GateDeps } from './gates';
import { Heartbeat, type Windows } from './heartbeat';
import type { Subscription } from './channel';
import { Hub } from './hub';
import { CLOSE, LIMITS } from './limits';
import { LIVE_TOPIC } from './envelopes';
import { Messages } from './messages';
import { RealtimeMetrics } from './metrics';
import { inTime, Outbox } from './outbox';
import { welcomeText } from './protocol';
import { PresenceRooms } from './presence-rooms';
import { Session } from './session';
import { Subscriptions } from './subscriptions';
import { Tail } from './tail';
import { refuse, refuseEarly, requestUrl, type Refusal } from './upgrade';

export interface RealtimeDeps extends Pick<GateDeps, 'features' | 'permissions_on'> {
  /** Every family of channels that there is. */
  families: readonly Family[];
  settings: Pick<Settings, 'allowed_origins' | 'public_url' | 'realtime'>;
  db: Queryable;
  wakeups: Wakeups;
  relay: Relay;
  /** Who is on which presence channel, on all nodes. Absent: presence channels are silent. */
  presence?: Presence;
  /** Who is calling; no credential at all is the anonymous caller. */
  resolve: CallerResolver['resolve'];
  /** The client's address behind trusted proxies; default: the socket's own. */
  client_ip?: (req: IncomingMessage) => string;
  again: CallerResolver['again'];
  /** The durable tail of revocations; returns a function that ends it. */
  on_revoked?: (listener: (revocation: Revocation) => void) => () => void;
  /** Counts upgrades, those that are refused too, and what sockets ask for. */
  counts: Pick<Counts, 'wait'>;
  /** The installation's epoch: another one after a restore. */
  epoch: string;
  version: string;
  log: Logger;
  metrics: Metrics;
  /** Default: off. */
  tracing?: Tracing;
  /** Other windows than the spec's 30 s, for tests that would have to wait for them. */
  windows?: Windows;
}

export interface Realtime {
  /** For the HTTP server's `upgrade` event. Answers every request, upgraded or refused. */
  handleUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void;
  /** Aggregate counts, for `GET /v1/health`. */
  stats(): { sessions: number; channels: number };
  /**
   * Closes every session with 1012, waits up to `drain_ms` (default 3 s) for the clients' answers, then ends what is
   * left.
   */
  stop(drain_ms?: number): Promise<void>;
}

const CLOSE_HANDSHAKE_MS = 5_000;
const RESOLVE_FAILED: Refusal = {
  status: 503,
  error: 'INTERNAL_SERVER_ERROR',
  message: 'Service unavailable',
  retry_after_seconds: 1,
};
const tooMany = (retry_after_seconds: number): Refusal => ({
  status: 429,
  error: 'RATE_LIMIT_EXCEEDED',
  message: 'Rate limit exceeded',
  retry_after_seconds,
});
const FAILURE_TEXTS = { TOKEN_EXPIRED: 'The token has expired', UNAUTHORIZED: 'Authentication required' } as const;

/** `ws` adds limits that its types do not know yet. */
interface HardenedOptions extends ServerOptions {
  maxFragments: number;
  maxBufferedChunks: number;
  closeTimeout: number;
}

/**
 * A connection with its session on it: listeners are shared functions that find the session here, so an idle socket
 * costs no closures.
 */
class SessionSocket extends WebSocket {
  session: Session | null = null;

  /**
   * Called by `ws` itself when a frame breaks the protocol or its limits: an oversized message gets its error first.
   */
  override close(code?: number, data?: string | Buffer): void {
    const oversized = code === CLOSE.too_large || code === 1008;
    if (oversized && this.session && !this.session.closing && this.readyState === WebSocket.OPEN) {
      this.session.close(CLOSE.too_large, 'MESSAGE_TOO_LARGE', 'MESSAGE_TOO_LARGE');
      return;
    }
    super.close(code, data);
  }
}

/** The WebSocket service of one node. Source: spec doc3 §4.1, design §8. */
export function createRealtime(deps: RealtimeDeps): Realtime {
  const { log } = deps;
  const metrics = new RealtimeMetrics(deps.metrics);
  const sessions = new Map<string, Session>();
  const outbox = new Outbox(deps.db, deps.settings.realtime.resume_window);
  const fallBack = (subscription: Subscription) => subscriptions.fallBack(subscription);
  const families = new Families(deps.families);
  const hub = new Hub(deps.epoch, metrics, fallBack, deps.tracing ?? NO_TRACING, families.messageType);
  const tail = new Tail({
    outbox,
    wakeups: deps.wakeups,
    log,
    metrics,
    deliver: (message) => hub.stored(message),
    unheard: () => hub.channels.size === 0,
    saturated: () => hub.fan_out.saturated,
  });
  // A person was erased: their frames must not be sent again from memory.
  const end_erasures = deps.wakeups.on('messages-erased', () => hub.forgetHistories());
  const resume_window_ms = deps.settings.realtime.resume_window;
  const store = deps.presence;
  const rooms = store
    ? new PresenceRooms({ hub, store, relay: deps.relay, db: deps.db, log, compare_ms: deps.windows?.compare_ms })
    : null;
  if (rooms) hub.onLeave = (subscription) => rooms.left(subscription);
  const services: ChannelServices = { db: deps.db, rooms };
  const { features, permissions_on } = deps;
  const gates = new Gates({ families, services, features, permissions_on });
  const subscriptions: Subscriptions = new Subscriptions({
    hub,
    gates,
    outbox,
    tail,
    resume_window_ms,
    families,
    services,
    log,
    metrics,
  });
  const messages = new Messages({ subscriptions, gates, relay: deps.relay, counts: deps.counts, log });
  const heartbeat = new Heartbeat({
    sessions,
    hub,
    gates,
    again: deps.again,
    log,
    metrics,
    windows: deps.windows,
  });
  const end_revocations = deps.on_revoked?.((revocation) => heartbeat.revoked(revocation));
  const end_relay = deps.relay.subscribe(LIVE_TOPIC, (text) => relayed(text));
  const origins = [...deps.settings.allowed_origins];
  if (deps.settings.public_url) origins.push(new URL(deps.settings.public_url).origin);
  let count = 0;
  let stopping = false;

  const options: HardenedOptions = {
    noServer: true,
    WebSocket: SessionSocket,
    clientTracking: false,
    perMessageDeflate: false,
    autoPong: false,
    maxPayload: LIMITS.payload_bytes,
    maxFragments: LIMITS.fragments,
    maxBufferedChunks: LIMITS.buffered_chunks,
    closeTimeout: CLOSE_HANDSHAKE_MS,
  };
  const server = new WebSocketServer(options);

  function relayed(text: string): void {
    metrics.relayed.inc();
    try {
      const { channel, message } = JSON.parse(text) as { channel?: unknown; message?: unknown };
      if (typeof channel === 'string' && typeof message === 'string') hub.transient(channel, message);
      else log.warn({}, 'a relay message has no channel or no message');
    } catch (error) {
      log.warn({ err: error }, 'a relay message is not JSON');
    }
  }

  function onMessage(this: WebSocket, data: RawData, is_binary: boolean): void {
    const { session } = this as SessionSocket;
    // Node buffers (the default binary type) are never arrays or ArrayBuffers here.
    if (session) messages.received(session, data as Buffer, is_binary);
  }
  function onPing(this: WebSocket, data: Buffer): void {
    const { session } = this as SessionSocket;
    if (session) messages.pinged(session, data);
  }
  function onPong(this: WebSocket): void {
    const { session } = this as SessionSocket;
    if (session) session.last_seen = Date.now();
  }
  function onError(this: WebSocket, error: Error): void {
    log.debug({ err: error, session: (this as SessionSocket).session?.id }, 'a socket failed');
  }
  function onClose(this: WebSocket): void {
    const { session } = this as SessionSocket;
    if (!session) return;
    session.closing = true;
    sessions.delete(session.id);
    hub.blocked.delete(session);
    for (const subscription of [...session.subscriptions]) hub.leave(subscription);
    session.ended();
  }
  const onBlocked = (session: Session): void => void hub.blocked.add(session);

  function accept(ws: SessionSocket, socket: Socket, caller: Caller): void {
    count += 1;
    const session = new Session(uuidv7(), count, ws, socket, caller, Date.now(), onBlocked);
    ws.session = session;
    sessions.set(session.id, session);
    ws.on('message', onMessage);
    ws.on('ping', onPing);
    ws.on('pong', onPong);
    ws.on('error', onError);
    ws.on('close', onClose);
    session.send(welcomeText(session.id, deps.version));
    heartbeat.admitted(session);
    if (stopping) session.close(CLOSE.restart, 'RESTART');
  }

  /**
   * Everything before the 101: the caller when it may come in. A refusal costs the network a unit, of a bucket that
   * holds nothing else.
   */
  async function check(req: IncomingMessage): Promise<Refusal | Caller> {
    if (stopping) return { ...RESOLVE_FAILED, message: 'The node is stopping' };
    const url = requestUrl(req);
    const ip = deps.client_ip?.(req) ?? req.socket.remoteAddress ?? '';
    const early = refuseEarly(req, url, origins);
    if (early) return counted(early, ip);
    const account = req.headers['x-lumio-account'];
    const resolved = await inTime(
      deps.resolve({
        authorization: req.headers.authorization,
        query_token: url!.searchParams.get('token') ?? undefined,
        on_upgrade: true,
        account_header: typeof account === 'string' ? account : undefined,
        ip,
        now: Date.now(),
      }),
    );
    if (resolved.failure !== null) {
      return counted({ status: 401, error: resolved.failure, message: FAILURE_TEXTS[resolved.failure] }, ip);
    }
    const wait = await deps.counts.wait(upgradeBucket(resolved.caller));
    return wait === null ? resolved.caller : tooMany(wait);
  }

  async function counted(refusal: Refusal, ip: string): Promise<Refusal> {
    const wait = await deps.counts.wait(failureBucket(ip));
    return wait === null ? refusal : tooMany(wait);
  }

  function handleUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until `ws` takes the socket over nobody else listens: a reset in between must not end the process.
    const onSocketError = (): void => void socket.destroy();
    socket.on('error', onSocketError);
    check(req)
      .catch((error: unknown): Refusal => {
        if (error instanceof ApiError && error.retry_after_seconds !== undefined) {
          return {
            status: error.status,
            error: error.code,
            message: error.message,
            retry_after_seconds: error.retry_after_seconds,
          };
        }
        log.error({ err: error }, 'an upgrade could not be checked');
        return RESOLVE_FAILED;
      })
      .then((result) => {
        if ('status' in result) {
          metrics.refused.inc(1, { status: String(result.status) });
          refuse(socket, result);
          return;
        }
        if (socket.destroyed) return;
        socket.off('error', onSocketError);
        server.handleUpgrade(req, socket, head, (ws) => accept(ws as SessionSocket, socket as Socket, result));
      })
      .catch((error: unknown) => {
        log.error({ err: error }, 'an upgrade failed');
        socket.destroy();
      });
  }

  return {
    handleUpgrade,
    stats: () => ({ sessions: sessions.size, channels: hub.count() }),
    async stop(drain_ms = 3_000) {
      stopping = true;
      end_relay();
      end_revocations?.();
      heartbeat.stop();
      end_erasures();
      await tail.stop();
      hub.fan_out.drain(hub.channels.values());
      for (const session of sessions.values()) session.close(CLOSE.restart, 'RESTART');
      const deadline = Date.now() + drain_ms;
      while (sessions.size > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
      for (const session of sessions.values()) {
        session.ws.terminate();
        for (const subscription of [...session.subscriptions]) hub.leave(subscription);
      }
      await rooms?.stop();
      metrics.publish(new Set());
      server.close();
    },
  };
}
