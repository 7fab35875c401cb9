import { SERVICE } from '../domain/vendors';
import { keepsOneOrder } from '../projections/runtime/outbox-order';
import { createRealtime } from '../realtime/runtime/service';
import { CHANNELS } from './areas';
import type { CallersDeps, Callers } from './callers';
import { clientIp } from '../api/client-ip';
import { atMostOnce } from '../kernel/stops';
import { VERSION } from './version';

/** The role `realtime`, where the process has it, and how many it serves. */
export function openLive(deps: CallersDeps, { resolver, members, features, tail, counts }: Callers) {
  const { settings, engines, db, log, metrics, stops } = deps;
  const { wakeups, relay, slots, tracing } = engines;
  const realtime = settings.roles.includes('realtime')
    ? createRealtime({
        settings,
        db,
        wakeups,
        relay,
        builds_before: () => keepsOneOrder(db),
        families: CHANNELS,
        presence: engines.presence,
        features,
        resolve: (credentials) => resolver.resolve(credentials),
        permissions_on: members.permissionsOn,
        client_ip: clientIp(settings.trusted_proxies),
        again: resolver.again,
        on_revoked: (listener) => tail.on(listener),
        counts,
        slots,
        epoch: engines.installation.epoch,
        version: VERSION,
        log,
        metrics,
        tracing,
      })
    : undefined;
  // In case the start fails before the front door is open; else it ends earlier, since sockets are told first.
  const stop = atMostOnce(async () => realtime?.stop());
  stops.add(stop);
  const stats = () => realtime?.stats() ?? { sessions: 0, channels: 0 };
  const sessions = metrics.gauge(`${SERVICE}_websocket_sessions`, 'Connected WebSocket sessions');
  const channels = metrics.gauge(`${SERVICE}_websocket_channels`, 'Channels with at least one subscriber');
  metrics.beforeRender(() => {
    sessions.set(stats().sessions);
    channels.set(stats().channels);
  });
  return { realtime, stats, stop };
}
