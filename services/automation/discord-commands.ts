import { nameKey } from '../../domain/automation/bot-commands';
import type { Queryable } from '../../engines/postgres/port';
import { accountFlags } from './account-flags';
import { commandsNamed } from './effective-commands';

/** Whether a word names a command that the account answers in Discord after `!`. */
export async function isDiscordCommand(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  word: string,
): Promise<boolean> {
  const name = { account_id, key: nameKey(word) };
  const command = (await commandsNamed(db, [name]))(name);
  if (command?.enabled !== true || !command.platforms.includes('discord')) return false;
  const forms = await db.query(
    `select 1 as one from bot_commands where id = $1 and discord_form in ('prefix', 'both')`,
    [command.command_id],
    'discord-command-form',
  );
  return forms.length > 0;
}

const BOTS = 'feature:bots';

/** Whether the account's bot is in the server, and its plan has bots. */
export async function hasBotsInDiscord(
  db: Pick<Queryable, 'query'>,
  { account_id, guild_id }: { account_id: string; guild_id: string },
): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from bot_connections b where b.account_id = $1 and b.platform = 'discord'
       and b.platform_user_id = $2`,
    [account_id, guild_id],
    'discord-has-bots',
  );
  return rows.length > 0 && (await accountFlags(db, [account_id], [BOTS]))(BOTS, account_id);
}
