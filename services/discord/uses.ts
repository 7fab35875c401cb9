import type { DiscordFeature } from '../../domain/connections/discord-guilds';
import { accountFlags } from '../automation/account-flags';
import { type Queryable, textArray } from '../../engines/postgres/port';

/** A channel of an account's server that has a use. */
export interface DiscordUse {
  account_id: string;
  connection_id: string;
  feature: DiscordFeature;
  channel_id: string;
  settings: { event_types?: readonly string[] | null; live_message?: string | null };
}

const BOTS = 'feature:bots';

/** Channels with one of these uses, of those of these accounts whose plan has bots. */
export async function discordUses(
  db: Pick<Queryable, 'query'>,
  accounts: readonly string[],
  features: readonly DiscordFeature[],
): Promise<DiscordUse[]> {
  const uses = await db.query<DiscordUse & Record<string, unknown>>(
    `select c.account_id, c.connection_id, c.feature, c.channel_id, coalesce(g.settings, '{}') as settings
     from discord_guild_channels c join bot_connections b on b.id = c.connection_id
       left join discord_guilds g on g.connection_id = c.connection_id
     where c.account_id = any($1::text[]::uuid[]) and c.feature = any($2::text[])`,
    [textArray([...new Set(accounts)]), textArray([...features])],
    'discord-uses',
  );
  const isOn = await accountFlags(
    db,
    uses.map(({ account_id }) => account_id),
    [BOTS],
  );
  return uses.filter(({ account_id }) => isOn(BOTS, account_id));
}

/** The channel of a use of a connection; undefined after its end, and while the account has no bots. */
export async function discordUse(
  db: Pick<Queryable, 'query'>,
  of: Pick<DiscordUse, 'account_id' | 'connection_id' | 'feature'>,
): Promise<DiscordUse | undefined> {
  const uses = await discordUses(db, [of.account_id], [of.feature]);
  return uses.find(({ connection_id }) => connection_id === of.connection_id);
}
