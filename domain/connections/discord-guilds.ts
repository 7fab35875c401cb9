import { z } from 'zod';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';

/** Uses of a channel of a server. Source: spec extra-facts §13. */
export const DISCORD_FEATURES = ['live_notification', 'event_feed', 'chat_mirror'] as const;
export type DiscordFeature = (typeof DISCORD_FEATURES)[number];
export const isDiscordFeature = (name: string): name is DiscordFeature =>
  (DISCORD_FEATURES as readonly string[]).includes(name);

/** Most bytes of the settings of a server, as JSON. */
export const MAX_SETTINGS_BYTES = 16 << 10;

const ids = { account_id: z.uuid(), connection_id: z.uuid(), guild_id: z.string() };
const feature = z.enum(DISCORD_FEATURES);
const audit = { target: ['discord_guild', 'guild_id'] } as const;

/** Settings and channels of a Discord server, in the stream of the account's connections. */
export const DISCORD_GUILD_EVENTS = events({
  'discord_guild:configured': event(
    { ...ids, settings: z.string().describe('JSON text'), configured_at: instant() },
    { audit },
  ),
  'discord_guild:channel_set': event({ ...ids, feature, channel_id: z.string(), set_at: instant() }, { audit }),
  'discord_guild:channel_removed': event({ ...ids, feature, removed_at: instant() }, { audit }),
});
export type DiscordGuildEvent = EventOf<typeof DISCORD_GUILD_EVENTS>;

export type DiscordGuildCommand = { account_id: string; guild_id: string; now: string } & (
  | { type: 'discord_guild:configure'; settings: string }
  | { type: 'discord_guild:set_channel'; feature: DiscordFeature; channel_id: string }
  | { type: 'discord_guild:remove_channel'; feature: DiscordFeature }
);

/** Configuration of an account for its server. */
export interface DiscordGuildState {
  /** JSON text. */
  settings: string;
  channels: ReadonlyMap<DiscordFeature, string>;
}
export const NEW_GUILD: DiscordGuildState = { settings: '{}', channels: new Map() };

interface ConnectedGuild {
  connection_id: string;
  platform_user_id: string;
  guild: DiscordGuildState;
}

/** @throws DomainError GUILD_NOT_FOUND where the account has another server or none; CHANNEL_NOT_SET */
export function decideGuild(bot: ConnectedGuild | undefined, command: DiscordGuildCommand): DiscordGuildEvent[] {
  const { account_id, guild_id, now } = command;
  if (bot?.platform_user_id !== guild_id) throw new DomainError('GUILD_NOT_FOUND', { guild_id });
  const { connection_id, guild } = bot;
  const of = { account_id, connection_id, guild_id };
  switch (command.type) {
    case 'discord_guild:configure': {
      const { settings } = command;
      if (settings === guild.settings) return [];
      return [{ type: 'discord_guild:configured', ...of, settings, configured_at: now }];
    }
    case 'discord_guild:set_channel': {
      const { feature, channel_id } = command;
      if (guild.channels.get(feature) === channel_id) return [];
      return [{ type: 'discord_guild:channel_set', ...of, feature, channel_id, set_at: now }];
    }
    case 'discord_guild:remove_channel': {
      const { feature } = command;
      if (!guild.channels.has(feature)) throw new DomainError('CHANNEL_NOT_SET', { feature });
      return [{ type: 'discord_guild:channel_removed', ...of, feature, removed_at: now }];
    }
  }
}

export function evolveGuild(guild: DiscordGuildState, event: DiscordGuildEvent): DiscordGuildState {
  if (event.type === 'discord_guild:configured') return { ...guild, settings: event.settings };
  const channels = new Map(guild.channels);
  if (event.type === 'discord_guild:channel_set') channels.set(event.feature, event.channel_id);
  else channels.delete(event.feature);
  return { ...guild, channels };
}
