import { z } from 'zod';
import { PLATFORMS } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { rowsOf, type Rows } from '../../kernel/operations/pages';
import { customBotAllowed } from '../../services/automation/custom-bots';
import { ACCOUNT_NAME } from '../accounts/accounts';
import { isRareTerm, namedAccounts, accountOrOwnerMatches } from '../identity/name-search';

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

/** The state of the bot at `p.platform`, over the tables that {@link stateTables} joins. */
const STATE = `p.platform, coalesce(c.bot_enabled, false) as enabled,
  case when c.id is null or c.reconnect_required then 'no_connection'
       when c.bot_enabled then 'active' else 'paused' end as status,
  case when b.id is not null and not b.reconnect_required and ${customBotAllowed('b.account_id')} then 'account'
       when s.bot_connection_id is not null and not s.reconnect_required then 'system' else 'none' end as bot`;

/** `account` is the SQL of an account's id. */
const stateTables = (account: string): string => `
  left join channel_connections c on c.account_id = ${account} and c.platform = p.platform
  left join bot_connections b on b.account_id = ${account} and b.platform = p.platform
  left join system_connections s on s.platform = p.platform`;

/** State for each streaming platform, or for the named one. */
export function botStatesOf(
  { db }: { db: Queryable },
  account_id: string,
  platform: string | null = null,
): Promise<BotState[]> {
  return db.query<BotState>(
    `select ${STATE} from unnest($2::text[]) with ordinality as p (platform, place) ${stateTables('$1')}
     order by p.place`,
    [account_id, platform === null ? PLATFORMS : [platform]],
    'bot-states',
  );
}

/** The bot at one platform of one account, as operators see it. Source: spec extra-facts §27. */
export const BotControl = BotState.extend({ account_id: z.uuid(), account_name: z.string() }).meta({
  id: 'AdminBotControl',
});
export type BotControl = z.output<typeof BotControl>;

/** Filter of bots; a member that is null or absent restricts nothing. */
export interface WhichBots {
  account_id?: string | null;
  platform?: string | null;
  status?: BotState['status'] | null;
  /** Part of the account's name or its owner's, case-insensitive. */
  search?: string | null;
}

/** Query of bots by account name ($3); `few` starts from the few matching accounts. */
const controls = (few: boolean): string => {
  const within = few ? 'where account_id in (select id from found)' : '';
  return `(
    ${few ? `with found as materialized (${namedAccounts('$3')})` : ''}
    select ${STATE}, p.account_id, p.account_name, p.account_created_at
    from (
      select k.account_id, k.platform, ${ACCOUNT_NAME} as account_name, a.created_at as account_created_at
      from (select account_id, platform from channel_connections ${within}
            union select account_id, platform from bot_connections ${within}) k
      join accounts a on a.id = k.account_id left join profiles p on p.user_id = a.owner_id
      where k.platform = any($1) and ($2::uuid is null or k.account_id = $2)
        and ($3 = '' or ${accountOrOwnerMatches('$3')})
    ) p ${stateTables('p.account_id')}
  ) bots where $4::text is null or status = $4`;
};

/** Bots by account and platform, where the account has a channel or a bot; newest account first. */
export async function botControlsOf(
  db: Queryable,
  page: Rows,
  which: WhichBots,
): Promise<{ items: BotControl[]; total: number }> {
  const { account_id = null, platform = null, status = null } = which;
  const search = which.search ?? '';
  const few = account_id === null && (await isRareTerm(db, search));
  return rowsOf(db, page, BotControl, {
    from: controls(few),
    order: 'account_created_at desc, account_id, platform',
    values: [platform === null ? PLATFORMS : [platform], account_id, search, status],
  });
}

/** A channel that the bot should be in. Source: spec extra-facts §13. */
export const BotChannel = z
  .object({ account_id: z.uuid(), connection_id: z.uuid(), platform: z.string(), platform_channel_id: z.string() })
  .meta({ id: 'BotChannel' });
