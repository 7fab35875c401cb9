import { z } from 'zod';
import { guildStream } from '../../domain/connections/connection-reservations';
import { DISCORD_FEATURES } from '../../domain/connections/discord-guilds';
import type { ReservationEvent } from '../../domain/common/reservations';
import type { EventStore } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { rowsOf, type Rows } from '../../kernel/operations/pages';
import { ACCOUNT_NAME } from '../accounts/accounts';
import { grantNames } from '../../services/connections/connection-grants';
import { isRareTerm, namedAccounts, accountOrOwnerMatches } from '../identity/name-search';
import type { Services } from '../../app/services';
import { fromStored } from '../../app/write-path/aggregate-cache';

const dateTime = z.string().meta({ format: 'date-time' });
/** In the stream's name a character may take five, of 400 at most (domain/common/reservations.ts). */
export const GuildId = z.string().min(1).max(80);

const Linked = z.object({
  guild_id: z.string(),
  connection_id: z.uuid(),
  account_id: z.uuid(),
  account_name: z.string(),
  connected_at: dateTime,
});

/** A Discord server that the bot was added to, for an account. Source: spec extra-facts §27. */
export const AdminDiscordGuild = Linked.extend({ guild_name: z.string().nullable() }).meta({ id: 'AdminDiscordGuild' });
export type AdminDiscordGuild = z.output<typeof AdminDiscordGuild>;

/** The account's own Discord server. Source: spec extra-facts §13. */
export const DiscordGuild = z
  .object({
    guild_id: z.string(),
    guild_name: z.string().nullable(),
    connected_at: dateTime,
    settings: z
      .record(z.string(), z.unknown())
      .describe('`event_types` of the feed (default: all) and `live_message`, a template; others are kept')
      .meta({ graphql: 'JSON' }),
    channels: z
      .partialRecord(z.enum(DISCORD_FEATURES), z.string())
      .describe('Ids of the channels that have a use')
      .meta({ graphql: 'JSON' }),
    slash_skipped: z.array(z.string()).describe('Names of commands that Discord does not take as slash commands'),
  })
  .meta({ id: 'DiscordGuild' });
export type DiscordGuild = z.output<typeof DiscordGuild>;

/** Servers of an account: one or none. */
export async function ownGuilds(
  { db, texts }: Pick<Services, 'texts'> & { db: Queryable },
  account_id: string,
): Promise<DiscordGuild[]> {
  const rows = await db.query<Omit<DiscordGuild, 'guild_name'> & { connection_id: string }>(
    `select b.id as connection_id, b.platform_user_id as guild_id, b.connected_at, coalesce(g.settings, '{}') as settings,
       coalesce((select jsonb_object_agg(c.feature, c.channel_id) from discord_guild_channels c
         where c.connection_id = b.id), '{}') as channels,
       coalesce(s.skipped, '{}') as slash_skipped
     from bot_connections b left join discord_guilds g on g.connection_id = b.id
       left join discord_slash_commands s on s.connection_id = b.id
     where b.account_id = $1 and b.platform = 'discord'`,
    [account_id],
    'discord-guilds-own',
  );
  const names = await grantNames(
    { db, texts },
    rows.map(({ connection_id }) => connection_id),
  );
  return rows.map(({ connection_id, ...row }) => ({
    ...row,
    guild_name: names.get(connection_id)?.display_name ?? null,
  }));
}

/** The account's server of this id; undefined for others. */
export const ownGuild = async (
  services: Pick<Services, 'texts'> & { db: Queryable },
  account_id: string,
  guild_id: string,
): Promise<DiscordGuild | undefined> =>
  (await ownGuilds(services, account_id)).find((guild) => guild.guild_id === guild_id);

/** Query of servers by account name ($1); `few` starts from the few matching accounts. */
const guilds = (few: boolean): string => `(
  ${few ? `with found as materialized (${namedAccounts('$1')})` : ''}
  select b.platform_user_id as guild_id, b.id as connection_id, b.account_id, ${ACCOUNT_NAME} as account_name,
    b.connected_at
  from bot_connections b join accounts a on a.id = b.account_id left join profiles p on p.user_id = a.owner_id
  where b.platform = 'discord' and ${few ? OF_FOUND : OF_ALL}
) guilds`;
const OF_ALL = `($1 = '' or b.platform_user_id = $1 or ${accountOrOwnerMatches('$1')})`;
const OF_FOUND = `b.id in (
  select o.id from found join bot_connections o on o.account_id = found.id
  union select id from bot_connections where platform = 'discord' and platform_user_id = $1)`;

/** Servers, newest first; `search` is part of an account's name or its owner's, or the server's whole id. */
export async function discordGuildsOf(
  services: Pick<Services, 'texts'> & { db: Queryable },
  page: Rows,
  search: string,
): Promise<{ items: AdminDiscordGuild[]; total: number }> {
  const few = await isRareTerm(services.db, search);
  const { items, total } = await rowsOf(services.db, page, Linked, {
    from: guilds(few),
    order: 'connected_at desc, guild_id',
    values: [search],
  });
  const names = await grantNames(
    services,
    items.map(({ connection_id }) => connection_id),
  );
  const named = items.map((one) => ({ ...one, guild_name: names.get(one.connection_id)?.display_name ?? null }));
  return { items: named, total };
}

/** The account that a Discord server is or was last connected to; null if there was none. */
export async function accountOfGuild(events: EventStore, guild_id: string): Promise<string | null> {
  const [last] = await events.read(guildStream(guild_id), undefined, { limit: 1, backwards: true });
  return last === undefined ? null : fromStored<ReservationEvent>(last).owner;
}

/** Whether a Discord server is linked to the account. */
export async function isGuildOf(db: Queryable, account_id: string | null, guild_id: string): Promise<boolean> {
  if (account_id === null) return false;
  const [row] = await db.query(
    `select 1 from bot_connections where account_id = $1 and platform = 'discord' and platform_user_id = $2`,
    [account_id, guild_id],
    'guild-of-account',
  );
  return row !== undefined;
}
