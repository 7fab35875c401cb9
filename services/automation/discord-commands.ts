import { nameKey } from '../../domain/automation/bot-commands';
import type { Queryable } from '../../engines/postgres/port';
import { accountFlags } from './account-flags';
import { commandsNamed, type EffectiveCommand, effectiveCommand } from './effective-commands';

interface InServer {
  account_id: string;
  guild_id: string;
}

const BOTS = 'feature:bots';
/** Whether the account's plan has bots. */
const hasBots = async (db: Pick<Queryable, 'query'>, account_id: string): Promise<boolean> =>
  (await accountFlags(db, [account_id], [BOTS]))(BOTS, account_id);

/** Whether a word names a command that the account answers in Discord after `!`. */
export async function isDiscordCommand(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  word: string,
): Promise<boolean> {
  const command = await commandNamed(db, account_id, word);
  if (command === undefined) return false;
  const forms = await db.query(
    `select 1 as one from bot_commands where id = $1 and discord_form in ('prefix', 'both')`,
    [command.command_id],
    'discord-command-form',
  );
  return forms.length > 0 && (await hasBots(db, account_id));
}

/** Whether a word names a command that the account answers in the server, in any form. */
export const isAnsweredInDiscord = async (
  db: Pick<Queryable, 'query'>,
  { word, ...server }: InServer & { word: string },
): Promise<boolean> =>
  (await commandNamed(db, server.account_id, word)) !== undefined && (await hasBotsInDiscord(db, server));

/** A command that the account answers in the server now; undefined after the end of the command or of the bot. */
export async function commandInDiscord(
  db: Pick<Queryable, 'query'>,
  { command_id, ...server }: InServer & { command_id: string },
): Promise<EffectiveCommand | undefined> {
  const command = await effectiveCommand(db, { account_id: server.account_id, command_id });
  return isOn(command) && (await hasBotsInDiscord(db, server)) ? command : undefined;
}

const isOn = (command: EffectiveCommand | undefined): command is EffectiveCommand =>
  command?.enabled === true && command.platforms.includes('discord');

async function commandNamed(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  word: string,
): Promise<EffectiveCommand | undefined> {
  const name = { account_id, key: nameKey(word) };
  const command = (await commandsNamed(db, [name]))(name);
  return isOn(command) ? command : undefined;
}

/** Whether the account's bot is in the server, and its plan has bots. */
async function hasBotsInDiscord(db: Pick<Queryable, 'query'>, { account_id, guild_id }: InServer): Promise<boolean> {
  const rows = await db.query(
    `select 1 as one from bot_connections b where b.account_id = $1 and b.platform = 'discord'
       and b.platform_user_id = $2`,
    [account_id, guild_id],
    'discord-has-bots',
  );
  return rows.length > 0 && (await hasBots(db, account_id));
}
