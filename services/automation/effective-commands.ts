import type { ResponseType } from '../../domain/automation/bot-commands';
import { type BotRole, strongerRole } from '../../domain/automation/bot-roles';
import type { BotPlatform } from '../../domain/common/vendors';
import { type Queryable, textArray } from '../../engines/postgres/port';

/** A command as an account has it: of a command of all accounts with the account's override. */
export interface EffectiveCommand {
  command_id: string;
  response_type: ResponseType;
  response: string | null;
  automation_id: string | null;
  platforms: readonly BotPlatform[];
  min_role: BotRole;
  cooldown_global: number;
  cooldown_user: number;
  enabled: boolean;
}

interface Row extends EffectiveCommand {
  own_role: BotRole | null;
}

const COLUMNS = `c.id as command_id, c.response_type, coalesce(o.response, c.response) as response,
  c.automation_id, coalesce(o.platforms, c.platforms) as platforms, c.min_role, o.min_role as own_role,
  coalesce(o.cooldown_global, c.cooldown_global) as cooldown_global,
  coalesce(o.cooldown_user, c.cooldown_user) as cooldown_user, c.enabled and coalesce(o.enabled, true) as enabled`;
const overrideOf = (account: string) =>
  `left join bot_command_overrides o on o.command_id = c.id and o.account_id = ${account}`;

/** A role that became weaker than the command's counts as the command's. */
const effective = ({ own_role, min_role, ...command }: Row): EffectiveCommand => ({
  ...command,
  min_role: own_role === null ? min_role : strongerRole(min_role, own_role),
});

/** A name that somebody used in an account's chat. */
export interface UsedName {
  account_id: string;
  /** As `nameKey` of domain/automation/bot-commands.ts. */
  key: string;
}

const usedKey = ({ account_id, key }: UsedName) => `${account_id} ${key}`;

/** Commands by name or alias. A command of the account wins over one of all accounts, even while it is disabled. */
export async function commandsNamed(
  db: Pick<Queryable, 'query'>,
  names: readonly UsedName[],
): Promise<(name: UsedName) => EffectiveCommand | undefined> {
  const distinct = [...new Map(names.map((name) => [usedKey(name), name])).values()];
  const rows = await db.query<Row & UsedName & Record<string, unknown>>(
    `select distinct on (n.account_id, n.key) n.account_id, n.key, found.*
     from (select unnest($1::text[])::uuid as account_id, unnest($2::text[]) as key) n
     cross join lateral (
       select 0 as place, ${COLUMNS} from bot_commands c ${overrideOf('n.account_id')}
       where c.account_id = n.account_id and (c.name_key = n.key or c.alias_key = n.key)
       union all
       select 1, ${COLUMNS} from bot_commands c ${overrideOf('n.account_id')}
       where c.account_id is null and (c.name_key = n.key or c.alias_key = n.key)) found
     order by n.account_id, n.key, found.place`,
    [textArray(distinct.map(({ account_id }) => account_id)), textArray(distinct.map(({ key }) => key))],
    'commands-named',
  );
  const found = new Map(rows.map((row) => [usedKey(row), effective(row)]));
  return (name) => found.get(usedKey(name));
}

/** A command with the account's override; undefined for commands of other accounts. */
export async function effectiveCommand(
  db: Pick<Queryable, 'query'>,
  { account_id, command_id }: { account_id: string; command_id: string },
): Promise<EffectiveCommand | undefined> {
  const [row] = await db.query<Row & Record<string, unknown>>(
    `select ${COLUMNS} from bot_commands c ${overrideOf('$1::uuid')}
     where c.id = $2 and (c.account_id = $1 or c.account_id is null)`,
    [account_id, command_id],
    'effective-command',
  );
  return row === undefined ? undefined : effective(row);
}
