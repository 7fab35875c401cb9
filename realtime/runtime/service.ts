import type { IncomingMessage } from 'node:http';
import type { Duplex } from 'node:stream';
import type { RateLimiter } from '../../access/limits/rate-limiter';
import type { CallerResolver } from '../../access/authentication/resolve';
import type { Revocation } from '../../access/authentication/revocations';
import type { Settings } from '../../kernel/settings/settings';
import type { Logger } from '../../engines/log/port';
import type { Metrics } from '../../engines/metrics/port';
import type { Queryable } from '../../engines/postgres/port';
import type { Presence } from '../../engines/presence/port';
import type { Relay } from '../../engines/relay/port';
import type { Slots } from '../../engines/slots/port';
import { NO_TRACING, type Tracing } from '../../engines/tracing/port';
import type { Wakeups } from '../../engines/wakeups/port';
import { OriginPolicy } from '../../lib/net/origins';
import { olderNodesConnected } from './delivery/older-nodes';
import { Families, type ChannelServices, type Family } from './channel/family';
import { ChannelAuthorizers, type AuthorizerDeps } from './channel/gates';
import { Heartbeat, type Windows } from './session/heartbeat';
import type { Subscription } from './channel/channel';
import { UpgradeAdmission } from './upgrade/admission';
import { Hub } from './delivery/hub';
import { Forwarding } from './forward/forwarding';
import { CLOSE } from './channel/limits';
import { Messages } from './channel/messages';
import { RealtimeMetrics } from './session/metrics';
import { Outbox } from './delivery/outbox';
import { welcomeText } from './channel/protocol';
import { PresenceRooms } from './presence/presence-rooms';
import { Subscriptions } from './session/subscriptions';
import { Tail } from './delivery/tail';
import { createSocketFailures } from './session/socket-failures';
import { Sockets } from './session/sockets';
import { TransientReceiver, TransientSender } from './relay/transient';
import { refuse } from './upgrade/upgrade';

export interface RealtimeDeps extends Pick<AuthorizerDeps, 'features' | 'permissions_on'> {
  /** Every family of channels that there is. */
  families: readonly Family[];
  settings: Pick<Settings, 'allowed_origins' | 'public_url' | 'realtime'>;
  db: Queryable;
  wakeups: Wakeups;
  relay: Relay;
  /** True while nodes of the previous release may be connected, which use a single topic for unstored messages. */
  older_nodes_connected?: (() => Promise<boolean>) | undefined;
  /** Presence store of all nodes. Absent: presence channels are silent. */
  presence?: Presence;
  /** The snapshot that `public-stats` channels begin with. Absent: they begin without one. */
  stream_snapshot?: ChannelServices['streamSnapshot'];
  /** Emotes and badges of channels; a service without this member sends none. */
  pictures?: ChannelServices['pictures'];
  /** Links to files of accounts. Absent: pages have no files. */
  file_link?: ChannelServices['fileLink'];
  /** Resolves the caller; a request without a credential is the anonymous caller. */
  resolve: CallerResolver['resolve'];
  /** The client's address behind trusted proxies; default: the socket's own. */
  client_ip?: (req: IncomingMessage) => string;
  /** The host that the client addressed, behind trusted proxies; default: the request's `Host`. */
  request_host?: (req: IncomingMessage) => string | undefined;
  revalidate: CallerResolver['revalidate'];
  /** The durable tail of revocations; returns a function that ends it. */
  on_revoked?: (listener: (revocation: Revocation) => void) => () => void;
  /** Counts upgrades, those that are refused too, and what sockets ask for. */
  counts: Pick<RateLimiter, 'wait' | 'pace'>;
  /** Counts the sockets of each caller, on all nodes. */
  slots: Pick<Slots, 'take' | 'giveBack'>;
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
  /** Milliseconds since this node last read the outbox. */
  silentFor(): number;
  /**
   * Closes every session with 1012, waits up to `drain_ms` (default 3 s) for the clients' answers, then ends what is
   * left.
   */
  stop(drain_ms?: number): Promise<void>;
}

/** The WebSocket service of one node. Source: spec doc3 §4.1, design §8. */
export function createRealtime(deps: RealtimeDeps): Realtime {
  const { log } = deps;
  const failed = createSocketFailures(log);
  const metrics = new RealtimeMetrics(deps.metrics);
  const outbox = new Outbox(deps.db, deps.settings.realtime.resume_window);
  const fallBack = (subscription: Subscription) => subscriptions.scheduleReplay(subscription);
  const families = new Families(deps.families);
  const hub = new Hub(deps.epoch, metrics, fallBack, deps.tracing ?? NO_TRACING, families.messageType);
  const tail = new Tail({
    outbox,
    wakeups: deps.wakeups,
    log,
    metrics,
    deliver: (message) => hub.stored(message),
    channels: hub.channels,
    saturated: () => hub.fan_out.saturated,
  });
  // A person was erased: their frames must not be sent again from memory.
  const end_erasures = deps.wakeups.on('messages-erased', () => {
    hub.forgetHistories();
    void forwarding.removeErased();
  });
  const resume_window_ms = deps.settings.realtime.resume_window;
  const { relay, db, presence: store } = deps;
  const older_nodes_connected = olderNodesConnected(deps.older_nodes_connected);
  const compare_ms = deps.windows?.compare_ms;
  const rooms = store ? new PresenceRooms({ hub, store, relay, db, log, older_nodes_connected, compare_ms }) : null;
  if (rooms) hub.onLeave = (subscription) => rooms.left(subscription);
  const { features, permissions_on } = deps;
  const streamSnapshot = deps.stream_snapshot ?? (async () => null);
  const fileLink = deps.file_link ?? (async () => '');
  const pictures = deps.pictures ?? (async () => ({ sets: [], badges: [] }));
  const services: ChannelServices = { db: deps.db, features, fileLink, pictures, rooms, streamSnapshot, log };
  const gates = new ChannelAuthorizers({ families, services, features, permissions_on });
  const open = (channel: string) => subscriptions.open(channel);
  const forwarding = new Forwarding({ hub, families, services, features, open, outbox, log });
  hub.onSweep = (now) => forwarding.sweep(now);
  const subscriptions: Subscriptions = new Subscriptions({
    forwarding,
    hub,
    gates,
    outbox,
    tail,
    heard: (channel) => receiver.heard(channel),
    resume_window_ms,
    families,
    services,
    failed,
    metrics,
  });
  const transient = new TransientSender({ relay, metrics: deps.metrics, older_nodes_connected });
  const messages = new Messages({ subscriptions, gates, transient, counts: deps.counts, metrics, failed });
  const sockets = new Sockets({
    hub,
    messages,
    log,
    onOpened(session) {
      session.send(welcomeText(session.id, deps.version));
      heartbeat.admitted(session);
      if (door.closed) session.close(CLOSE.restart, 'RESTART');
    },
    onGone: (caller) => door.release(caller),
  });
  const { sessions } = sockets;
  const heartbeat: Heartbeat = new Heartbeat({
    sessions,
    hub,
    gates,
    revalidate: deps.revalidate,
    log,
    metrics,
    windows: deps.windows,
  });
  const end_revocations = deps.on_revoked?.((revocation) => heartbeat.revoked(revocation));
  const receiver = new TransientReceiver({
    relay: deps.relay,
    metrics: deps.metrics,
    log,
    deliver(channel, message) {
      metrics.relayed.inc();
      hub.transient(channel, message);
    },
  });
  hub.channels.onShard = (shard, wanted) => receiver.listen(shard, wanted);
  const origins = new OriginPolicy(deps.settings);
  const { resolve, client_ip, request_host, counts, slots } = deps;
  const door = new UpgradeAdmission({ origins, resolve, client_ip, request_host, counts, slots, failed });

  function handleUpgrade(req: IncomingMessage, socket: Duplex, head: Buffer): void {
    // Until `ws` takes the socket over nobody else listens: a reset in between must not end the process.
    const onSocketError = (): void => void socket.destroy();
    socket.on('error', onSocketError);
    door
      .admit(req)
      .then((result) => {
        if ('status' in result) {
          metrics.refused.inc(1, { status: String(result.status) });
          refuse(socket, result);
          return;
        }
        if (socket.destroyed) return door.release(result);
        socket.off('error', onSocketError);
        sockets.open(req, socket, head, result);
      })
      .catch((error: unknown) => {
        log.error({ err: error }, 'an upgrade failed');
        socket.destroy();
      });
  }

  return {
    handleUpgrade,
    stats: () => ({ sessions: sessions.size, channels: hub.count() }),
    silentFor: () => tail.silentFor(),
    async stop(drain_ms = 3_000) {
      door.closed = true;
      receiver.stop();
      end_revocations?.();
      heartbeat.stop();
      end_erasures();
      await tail.stop();
      hub.fan_out.drain();
      for (const session of sessions.values()) session.close(CLOSE.restart, 'RESTART');
      const deadline = Date.now() + drain_ms;
      while (sessions.size > 0 && Date.now() < deadline) await new Promise((resolve) => setTimeout(resolve, 20));
      sockets.end();
      await rooms?.stop();
      metrics.publish(new Set());
    },
  };
}
