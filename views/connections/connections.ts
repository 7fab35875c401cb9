import { z } from 'zod';
import { switchesOf } from '../../domain/connections/providers';
import type { Queryable } from '../../engines/postgres/port';
import type { PersonalTexts } from '../../privacy/subject-keys/port';
import { grantNames } from '../../services/connections/connection-grants';
import { readChannelName } from '../../services/connections/channel-names';
import type { ChannelPlatform } from '../../domain/common/vendors';
import type { Services } from '../../app/services';

const dateTime = z.string().meta({ format: 'date-time' });

const shown = {
  id: z.uuid(),
  platform: z.string(),
  username: z.string().nullable(),
  display_name: z.string().nullable(),
  avatar_url: z.string().nullable(),
  scopes: z.array(z.string()),
  token_expires_at: dateTime.nullable().describe('Of the token now; it is renewed by itself'),
  reconnect_required: z.boolean().describe('The platform takes the tokens no longer: somebody must log in there again'),
  connected_at: dateTime,
};

/** A channel that an account is connected to; never its tokens. Source: spec extra-facts §13. */
export const ChannelConnection = z
  .object({
    ...shown,
    platform_channel_id: z.string(),
    bot_enabled: z.boolean().describe('False: the bot leaves this channel alone'),
  })
  .meta({ id: 'ChannelConnection' });
export type ChannelConnection = z.output<typeof ChannelConnection>;

/** A bot of an account; for Discord the server that the bot was added to. */
export const BotConnection = z.object({ ...shown, platform_user_id: z.string() }).meta({ id: 'BotConnection' });
export type BotConnection = z.output<typeof BotConnection>;

interface Reading {
  db: Queryable;
  texts: PersonalTexts;
}

/** The account's channels, by platform; with `id` only that one. */
export async function channelConnectionsOf(
  reading: Reading,
  account_id: string,
  id: string | null = null,
): Promise<ChannelConnection[]> {
  const found = await connectionsOf<ChannelConnection>(reading, CHANNELS, account_id, id);
  return Promise.all(
    found.map(async ({ row, names }) => {
      if (names !== undefined) return { ...row, ...names };
      const channel = { platform: row.platform as ChannelPlatform, platform_channel_id: row.platform_channel_id };
      return { ...row, ...NAMELESS, display_name: await readChannelName(reading, channel) };
    }),
  );
}

/** The account's bots, by platform; with `id` only that one. */
export async function botConnectionsOf(
  reading: Reading,
  account_id: string,
  id: string | null = null,
): Promise<BotConnection[]> {
  const found = await connectionsOf<BotConnection>(reading, BOTS, account_id, id);
  return found.map(({ row, names = NAMELESS }) => ({ ...row, ...names }));
}

interface Kept {
  table: string;
  /** Columns that the other table does not have. */
  columns: string;
  name: string;
}
const CHANNELS: Kept = {
  table: 'channel_connections',
  columns: 'c.platform_channel_id, c.bot_enabled',
  name: 'channel-connections',
};
const BOTS: Kept = { table: 'bot_connections', columns: 'c.platform_user_id', name: 'bot-connections' };

/** Rows with the scopes and expiry of their tokens, and the names from the login that made each, if any. */
async function connectionsOf<Connection extends Names & { id: string }>(
  reading: Reading,
  { table, columns, name }: Kept,
  account_id: string,
  id: string | null,
): Promise<{ row: Omit<Connection, keyof Names>; names: Names | undefined }[]> {
  const rows = await reading.db.query<Omit<Connection, keyof Names> & { id: string } & Record<string, unknown>>(
    `select c.id, c.platform, ${columns}, coalesce(g.scopes, '{}') as scopes, g.expires_at as token_expires_at,
       c.reconnect_required, c.connected_at
     from ${table} c left join connection_grants g on g.connection_id = c.id
     where c.account_id = $1 and ($2::uuid is null or c.id = $2) order by c.platform`,
    [account_id, id],
    name,
  );
  const names = await grantNames(
    reading,
    rows.map((row) => row.id),
  );
  return rows.map((row) => ({ row, names: names.get(row.id) }));
}

type Names = Pick<ChannelConnection, 'username' | 'display_name' | 'avatar_url'>;
const NAMELESS: Names = { username: null, display_name: null, avatar_url: null };

/** Connections whose platform is enabled for this kind of connection. Source: spec doc2 §4.2. */
export async function offered<Connection extends { platform: string }>(
  { features }: Pick<Services, 'features'>,
  kind: 'channel' | 'bot',
  account_id: string,
  connections: readonly Connection[],
): Promise<Connection[]> {
  const on = await Promise.all(
    connections.map(async ({ platform }) => {
      const flags = await Promise.all(
        switchesOf(platform, kind).map(async (flag) => features.enabled(flag, account_id)),
      );
      return flags.every(Boolean);
    }),
  );
  return connections.filter((_one, index) => on[index]);
}
