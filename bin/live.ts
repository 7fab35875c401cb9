import type { Logger } from '../engines/log/port';
import type { ChannelEmotes, EmoteSet } from '../services/chat/emotes';
import type { BadgePicture, EmotePlatform } from '../vendors/emotes/port';
import { fileLink } from '../services/studio/file-links';
import { type Platform, SERVICE } from '../domain/common/vendors';
import { publicStreamOf } from '../views/history/public-stats';
import { keepsOneOrder } from '../projections/runtime/outbox/order';
import { createRealtime } from '../realtime/runtime/service';
import { CHANNELS } from './areas';
import type { CallersDeps, Callers } from './callers';
import { clientIp, requestHost } from '../api/http/requests/client-ip';
import { once } from '../lib/async/shutdown-stack';
import { VERSION } from './version';

/** Opens the role `realtime` where the process has it, and its statistics. */
export function openLive(
  deps: CallersDeps,
  { resolver, members, features, tail, counts }: Callers,
  emotes: ChannelEmotes,
) {
  const { settings, engines, db, log, metrics, stops } = deps;
  const { wakeups, relay, slots, tracing } = engines;
  const { overlay } = settings.hosts;
  // Pages of overlays may open the socket of another host.
  const allowed = overlay === undefined ? settings.allowed_origins : [...settings.allowed_origins, overlay];
  const realtime = settings.roles.includes('realtime')
    ? createRealtime({
        settings: { ...settings, allowed_origins: allowed },
        db,
        wakeups,
        relay,
        older_nodes_connected: () => keepsOneOrder(db),
        families: CHANNELS,
        presence: engines.presence,
        stream_snapshot: async (platform, broadcast_id) =>
          (await publicStreamOf(db, platform as Platform, broadcast_id)) ?? null,
        features,
        pictures: picturesOf(emotes, log),
        file_link: (file) => fileLink(engines.subject_keys, file, Date.now()),
        resolve: (credentials) => resolver.resolve(credentials),
        permissions_on: members.permissionsOn,
        client_ip: clientIp(settings.trusted_proxies),
        request_host: requestHost(settings.trusted_proxies),
        revalidate: resolver.revalidate,
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
  // Stops it when the start fails before the front door is open; otherwise it stops earlier, to notify the sockets
  // first.
  const stop = once(async () => realtime?.stop());
  stops.add(stop);
  const stats = () => realtime?.stats() ?? { sessions: 0, channels: 0 };
  const sessions = metrics.gauge(`${SERVICE}_websocket_sessions`, 'Connected WebSocket sessions');
  const channels = metrics.gauge(`${SERVICE}_websocket_channels`, 'Channels with at least one subscriber');
  const silent = metrics.gauge(
    `${SERVICE}_websocket_tail_silent_seconds`,
    'Seconds since this realtime node read the outbox; it does so each second',
  );
  metrics.beforeRender(() => {
    silent.set((realtime?.silentFor() ?? 0) / 1000);
    sessions.set(stats().sessions);
    channels.set(stats().channels);
  });
  return { realtime, stats, stop };
}

/** Emotes and badges for pages, which begin without those of a channel that cannot be read. */
const picturesOf =
  (emotes: ChannelEmotes, log: Logger) =>
  async (platform: string, channel_id: string): Promise<{ sets: EmoteSet[]; badges: BadgePicture[] }> => {
    const of = [platform as EmotePlatform, channel_id] as const;
    try {
      const [sets, badges] = await Promise.all([emotes.of(...of), emotes.badges(...of)]);
      return { sets, badges };
    } catch (error) {
      log.warn({ err: error, platform, channel_id }, 'a page has no emotes of a channel');
      return { sets: [], badges: [] };
    }
  };
