import { z } from 'zod';
import { switchesOf } from '../domain/providers';
import type { Queryable } from '../engines/postgres/port';
import type { PersonalTexts } from '../engines/subject-keys/port';
import { grantNames } from './connection-grants';
import { readChannelName } from './channel-names';
import type { ChannelPlatform } from '../domain/vendors';
import type { Services } from './services';

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

/** A bot of an account; of Discord it is the server that the bot was let into. */
export const BotConnection = z.object({ ...shown, platform_user_id: z.string() }).meta({ id: 'BotConnection' });
export type BotConnection = z.output<typeof BotConnection>;

interface Reading {
  db: Queryable;
  texts: PersonalTexts;
}

/** The account's channels, by platform; with `id` that one alone. */
export async function channelConnectionsOf(
  reading: Reading,
  account_id: string,
  id: string | null = null,
): Promise<ChannelConnection[]> {
  const rows = await reading.db.query<Omit<ChannelConnection, keyof Names> & Record<string, unknown>>(
    `select c.id, c.platform, c.platform_channel_id, coalesce(g.scopes, '{}') as scopes,
       g.expires_at as token_expires_at, c.reconnect_required, c.bot_enabled, c.connected_at
     from channel_connections c left join connection_grants g on g.connection_id = c.id
     where c.account_id = $1 and ($2::uuid is null or c.id = $2) order by c.platform`,
    [account_id, id],
    'channel-connections',
  );
  const names = await grantNames(
    reading,
    rows.map((row) => row.id),
  );
  return Promise.all(
    rows.map(async (row) => {
      const known = names.get(row.id);
      if (known !== undefined) return { ...row, ...known };
      const channel = { platform: row.platform as ChannelPlatform, platform_channel_id: row.platform_channel_id };
      return { ...row, ...NAMELESS, display_name: await readChannelName(reading, channel) };
    }),
  );
}

/** The account's bots, by platform; with `id` that one alone. */
export async function botConnectionsOf(
  reading: Reading,
  account_id: string,
  id: string | null = null,
): Promise<BotConnection[]> {
  const rows = await reading.db.query<Omit<BotConnection, keyof Names> & Record<string, unknown>>(
    `select c.id, c.platform, c.platform_user_id, coalesce(g.scopes, '{}') as scopes,
       g.expires_at as token_expires_at, c.reconnect_required, c.connected_at
     from bot_connections c left join connection_grants g on g.connection_id = c.id
     where c.account_id = $1 and ($2::uuid is null or c.id = $2) order by c.platform`,
    [account_id, id],
    'bot-connections',
  );
  const names = await grantNames(
    reading,
    rows.map((row) => row.id),
  );
  return rows.map((row) => ({ ...row, ...(names.get(row.id) ?? NAMELESS) }));
}

type Names = Pick<ChannelConnection, 'username' | 'display_name' | 'avatar_url'>;
const NAMELESS: Names = { username: null, display_name: null, avatar_url: null };

/** Those whose platform is offered for this kind of connection. Source: spec doc2 §4.2. */
export async function offered<Connection extends { platform: string }>(
  { features }: Pick<Services, 'features'>,
  kind: 'channel' | 'bot',
  account_id: string,
  connections: readonly Connection[],
): Promise<Connection[]> {
  const on = await Promise.all(
    connections.map(async ({ platform }) => {
      const flags = await Promise.all(switchesOf(platform, kind).map((flag) => features.enabled(flag, account_id)));
      return flags.every(Boolean);
    }),
  );
  return connections.filter((_one, index) => on[index]);
}
