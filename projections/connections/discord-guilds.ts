import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { CONNECTION_EVENTS } from '../../domain/connections/connections';
import { DISCORD_GUILD_EVENTS } from '../../domain/connections/discord-guilds';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer, pick } from '../runtime/drive/handlers';

/** Settings and channels of Discord servers; both end with the connection of the bot. */
export const discordGuilds = eventProjection({
  name: 'discord-guilds',
  version: 1,
  tables: ['discord_guilds', 'discord_guild_channels'],
  events: [
    DISCORD_GUILD_EVENTS,
    pick(CONNECTION_EVENTS, 'connection:bot_disconnected'),
    pick(ACCOUNT_EVENTS, 'account:dissolved'),
  ],
  on: {
    'discord_guild:configured': lastPer(
      ['connection_id'],
      sql`
      insert into discord_guilds (connection_id, account_id, guild_id, settings)
      select connection_id, account_id, guild_id, settings::jsonb from e
      on conflict (connection_id) do update set settings = excluded.settings`,
    ),
    'discord_guild:channel_set': lastPer(
      ['connection_id', 'feature'],
      sql`
      insert into discord_guild_channels (connection_id, account_id, feature, channel_id)
      select connection_id, account_id, feature, channel_id from e
      on conflict (connection_id, feature) do update set channel_id = excluded.channel_id`,
    ),
    'discord_guild:channel_removed': all(sql`
      delete from discord_guild_channels c using e where c.connection_id = e.connection_id and c.feature = e.feature`),
    'connection:bot_disconnected': all(
      sql`delete from discord_guilds g using e where g.connection_id = e.connection_id`,
      sql`delete from discord_guild_channels c using e where c.connection_id = e.connection_id`,
    ),
    'account:dissolved': all(
      sql`delete from discord_guilds g using e where g.account_id = e.account_id`,
      sql`delete from discord_guild_channels c using e where c.account_id = e.account_id`,
    ),
  },
});
