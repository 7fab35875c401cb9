import { z } from 'zod';
import { PLATFORMS } from '../domain/vendors';
import type { Services } from './services';

/** Whether the bot acts in an account's channel. Source: spec extra-facts §13. */
export const BotState = z
  .object({
    platform: z.string(),
    status: z.enum(['active', 'paused', 'no_connection']).meta({
      id: 'BotStatusValue',
      description: 'active: connected and let act; paused: told not to; no_connection: no channel that can be used',
    }),
    enabled: z.boolean(),
    bot: z
      .enum(['account', 'system', 'none'])
      .meta({ id: 'BotSource', description: "Which bot acts: the account's own, else the installation's" }),
  })
  .meta({ id: 'BotStatus' });
export type BotState = z.output<typeof BotState>;

/** One for each streaming platform, or that one alone. */
export async function botStatesOf(
  { db }: Pick<Services, 'db'>,
  account_id: string,
  platform: string | null = null,
): Promise<BotState[]> {
  return db.query<BotState & Record<string, unknown>>(
    `select p.platform, coalesce(c.bot_enabled, false) as enabled,
       case when c.id is null or c.reconnect_required then 'no_connection'
            when c.bot_enabled then 'active' else 'paused' end as status,
       case when b.id is not null and not b.reconnect_required then 'account'
            when s.bot_connection_id is not null and not s.reconnect_required then 'system' else 'none' end as bot
     from unnest($2::text[]) with ordinality as p (platform, place)
     left join channel_connections c on c.account_id = $1 and c.platform = p.platform
     left join bot_connections b on b.account_id = $1 and b.platform = p.platform
     left join system_connections s on s.platform = p.platform
     order by p.place`,
    [account_id, platform === null ? PLATFORMS : [platform]],
    'bot-states',
  );
}

/** A channel that the bot should be in. Source: spec extra-facts §13. */
export const BotChannel = z
  .object({ account_id: z.uuid(), connection_id: z.uuid(), platform: z.string(), platform_channel_id: z.string() })
  .meta({ id: 'BotChannel' });
