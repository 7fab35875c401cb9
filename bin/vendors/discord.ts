import type { Metrics } from '../../engines/metrics/port';
import type { Engines } from '../../engines/engines';
import type { Settings } from '../../kernel/settings/settings';
import type { ShutdownStack } from '../../lib/async/shutdown-stack';
import { createDiscordBuckets } from '../../services/discord/buckets';
import type { DiscordRest } from '../../vendors/discord/port';
import { discordRest } from '../../vendors/discord/rest';
import { openHttp } from './http';

/** Calls of Discord's REST in the bot's name. */
export const openDiscord = (deps: {
  settings: Settings;
  engines: Pick<Engines, 'db' | 'tracing'>;
  metrics: Metrics;
  stops: ShutdownStack;
}): DiscordRest => discordRest(openHttp(deps), deps.settings.discord, createDiscordBuckets(deps.engines.db));
