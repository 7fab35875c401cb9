import { type Queryable, textArray } from '../../engines/postgres/port';
import { DiscordRefused, type DiscordRest, type SlashCommand } from '../../vendors/discord/port';
import { accountFlags } from '../automation/account-flags';

/** Most slash commands of a bot in a server. */
const MAX_COMMANDS = 100;
/** Most characters of a description. */
const MAX_DESCRIPTION = 100;
/** Servers that are brought up to date at a time. */
const SERVERS = 20;
/** Registrations of a server in which Discord may refuse names. */
const TRIES = 3;
/** Names that Discord takes. */
const NAME = /^[-_'\p{L}\p{N}]{1,32}$/u;

interface Server {
  connection_id: string;
  account_id: string;
  guild_id: string;
  commands: SlashCommand[];
  hash: string;
}

const BOTS = 'feature:bots';
const ACCOUNTS = `select account_id from bot_connections where platform = 'discord'`;
/** Commands of an account's server: its own, and those of all accounts whose name it does not use itself. */
const COMMANDS = `
  select c.name_key as name, coalesce(nullif(c.description, ''), c.name) as description, c.account_id is null as is_global,
    c.created_at, c.id
  from bot_commands c left join bot_command_overrides o on o.command_id = c.id and o.account_id = b.account_id
  where (c.account_id = b.account_id or (c.account_id is null and not exists (
      select from bot_commands own where own.account_id = b.account_id
        and (own.name_key = c.name_key or own.alias_key = c.name_key))))
    and c.enabled and coalesce(o.enabled, true) and c.discord_form in ('slash', 'both')
    and 'discord' = any(coalesce(o.platforms, c.platforms)) and b.account_id = any($1::text[]::uuid[])`;
const CHANGED = `
  select wanted.* from (
    select b.id as connection_id, b.account_id, b.platform_user_id as guild_id, coalesce(l.commands, '[]') as commands,
      md5(coalesce(l.commands, '[]')::text) as hash
    from bot_connections b cross join lateral (
      select jsonb_agg(jsonb_build_object('name', k.name, 'description', k.description)
        order by k.is_global, k.created_at, k.id) as commands
      from (${COMMANDS}) k) l
    where b.platform = 'discord') wanted
  left join discord_slash_commands s on s.connection_id = wanted.connection_id
  where s.hash is distinct from wanted.hash
  order by s.tried_at nulls first, wanted.connection_id limit ${SERVERS}`;
/** Tried servers come after all others, so that a server that fails holds up none. */
const TRY = `
  insert into discord_slash_commands (connection_id, account_id, skipped, tried_at)
  select b.id, b.account_id, '{}', clock_timestamp() from bot_connections b where b.id = $1
  on conflict (connection_id) do update set tried_at = excluded.tried_at`;
const STORE = `
  insert into discord_slash_commands (connection_id, account_id, skipped, hash)
  select b.id, b.account_id, $2::text[], $3 from bot_connections b where b.id = $1
  on conflict (connection_id) do update set skipped = excluded.skipped, hash = excluded.hash`;

export interface SlashServices {
  db: Pick<Queryable, 'query'>;
  discord: Pick<DiscordRest, 'applicationId' | 'registerCommands'>;
  /** Reports a server whose commands could not be registered; a later call tries it again. */
  onFailed(error: unknown, guild_id: string): void;
}

/**
 * Registers the commands of servers whose commands have changed. A name that Discord does not take stays a prefix
 * command. Returns the number of servers.
 */
export async function registerSlashCommands(services: SlashServices, signal: AbortSignal): Promise<number> {
  const { db, discord, onFailed } = services;
  const accounts = (await db.query<{ account_id: string }>(ACCOUNTS, [], 'discord-accounts')).map(
    (row) => row.account_id,
  );
  const isOn = await accountFlags(db, accounts, [BOTS]);
  const with_bots = textArray(accounts.filter((account_id) => isOn(BOTS, account_id)));
  const servers = await db.query<Server & Record<string, unknown>>(CHANGED, [with_bots], 'discord-slash-changed');
  if (servers.length === 0) return 0;
  const application_id = await discord.applicationId();
  let registered = 0;
  for (const { connection_id, guild_id, commands, hash } of servers) {
    if (signal.aborted) break;
    await db.query(TRY, [connection_id], 'discord-slash-try');
    const skipped = await register(discord, { application_id, guild_id }, commands).catch((error: unknown) => {
      onFailed(error, guild_id);
      return null;
    });
    if (skipped === null) continue;
    await db.query(STORE, [connection_id, skipped, hash], 'discord-slash-store');
    registered += 1;
  }
  return registered;
}

/** Registers the commands of a server; returns the names that were left out. */
async function register(
  discord: SlashServices['discord'],
  { application_id, guild_id }: { application_id: string; guild_id: string },
  commands: readonly SlashCommand[],
): Promise<string[]> {
  const takeable = commands.filter(({ name }) => NAME.test(name));
  let offered = takeable.slice(0, MAX_COMMANDS).map(({ name, description }) => ({
    name,
    description: [...description].slice(0, MAX_DESCRIPTION).join(''),
  }));
  for (let time = 0; time < TRIES; time += 1) {
    try {
      await discord.registerCommands(application_id, guild_id, offered);
      return leftOut(commands, offered);
    } catch (error) {
      if (!(error instanceof DiscordRefused)) throw error;
      const refused = new Set(error.fields.map((path) => Number.parseInt(path, 10)));
      const left = offered.filter((_command, at) => !refused.has(at));
      // Discord refuses something else, such as a bot without the right to register commands.
      if (left.length === offered.length) return leftOut(commands, []);
      offered = left;
    }
  }
  return leftOut(commands, []);
}

function leftOut(commands: readonly SlashCommand[], offered: readonly SlashCommand[]): string[] {
  const names = new Set(offered.map(({ name }) => name));
  return commands.map(({ name }) => name).filter((name) => !names.has(name));
}
