import { z } from 'zod';
import { BOT_ROLES } from '../../domain/automation/bot-roles';
import { chosenMembers } from '../../domain/automation/bot-commands';
import { BOT_PLATFORMS } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';

const dateTime = z.string().meta({ format: 'date-time' });
const seconds = z.int().min(0);

/** Changes of an account to a command of all accounts. */
export const BotCommandOverride = z
  .object({
    response: z.string().nullable(),
    platforms: z.array(z.enum(BOT_PLATFORMS)).nullable(),
    min_role: z.enum(BOT_ROLES).nullable(),
    cooldown_global: seconds.nullable(),
    cooldown_user: seconds.nullable(),
    enabled: z.boolean().nullable(),
  })
  .meta({ id: 'BotCommandOverride', description: 'Null members are as the command says' });

/** A command of bots. Source: spec extra-facts §14 and §31. */
export const BotCommand = z
  .object({
    id: z.uuid(),
    account_id: z.uuid().nullable().describe('Null: a command of all accounts'),
    ...chosenMembers,
    use_count: z.int().describe('Answered uses; of a command of all accounts those of this account'),
    override: BotCommandOverride.nullable().describe('Of a command of all accounts: what this account changes'),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'BotCommand' });
export type BotCommand = z.output<typeof BotCommand>;

const MEMBERS = `c.id, c.account_id, c.name, c.alias, c.description, c.response_type, c.response, c.automation_id,
  c.platforms, c.min_role, c.cooldown_global, c.cooldown_user, c.discord_form, c.enabled, c.created_at, c.updated_at`;

/** Commands of the account ($1), and of all accounts as the account has them; for `from` of a statement. */
export const OF_ACCOUNT = `(
  select ${MEMBERS}, coalesce(u.use_count, 0) as use_count,
    case when o.command_id is not null then jsonb_build_object('response', o.response, 'platforms', o.platforms,
      'min_role', o.min_role, 'cooldown_global', o.cooldown_global, 'cooldown_user', o.cooldown_user,
      'enabled', o.enabled) end as override
  from bot_commands c
  left join bot_command_uses u on u.account_id = $1 and u.command_id = c.id
  left join bot_command_overrides o on o.account_id = $1 and o.command_id = c.id
  where c.account_id = $1 or c.account_id is null) commands`;

/** Commands as operators see them, with the sum of all uses: those of all accounts, or of single ones ($1: false). */
export const OF_SCOPE = `(
  select ${MEMBERS}, null::jsonb as override,
    (select coalesce(sum(u.use_count), 0)::bigint from bot_command_uses u where u.command_id = c.id) as use_count
  from bot_commands c where (c.account_id is null) = $1) commands`;

const COLUMNS = Object.keys(BotCommand.shape).join(', ');

/** Undefined for a command that the account does not see. */
export async function botCommandOf(db: Queryable, account_id: string, id: string): Promise<BotCommand | undefined> {
  const [row] = await db.query<BotCommand & Record<string, unknown>>(
    `select ${COLUMNS} from ${OF_ACCOUNT} where id = $2`,
    [account_id, id],
    'bot-command',
  );
  return row;
}

/** A command as operators see it. */
export async function adminBotCommandOf(
  db: Queryable,
  { id, account_id }: { id: string; account_id: string | null },
): Promise<BotCommand | undefined> {
  const [row] = await db.query<BotCommand & Record<string, unknown>>(
    `select ${COLUMNS} from ${OF_SCOPE} where id = $2`,
    [account_id === null, id],
    'admin-bot-command',
  );
  return row;
}
