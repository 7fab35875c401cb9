import type { RequestContext } from '../../access/authentication/caller';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';
import { newEvents } from '../../app/write-path/event-ids';
import { botCommandCount, botCommandCountStream } from '../../domain/automation/bot-command-counts';
import type { BotCommandEvent } from '../../domain/automation/bot-commands';
import type { Services } from '../../app/services';
import type { StreamWrite } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';

/** Writes that count a new or deleted command, with its event. @throws DomainError TOO_MANY_COMMANDS */
export async function countWrites(
  context: RequestContext,
  { db, events: store }: Pick<Services, 'db' | 'events'>,
  [changed]: readonly BotCommandEvent[],
): Promise<StreamWrite[]> {
  if (changed === undefined || changed.type === 'bot_command:updated') return [];
  const { command_id, account_id } = changed;
  const type = changed.type === 'bot_command:created' ? 'bot_command_count:add' : 'bot_command_count:remove';
  const stream = botCommandCountStream(account_id);
  const { state, revision } = await aggregateCacheOf(store).load(botCommandCount, stream);
  const uncounted = type === 'bot_command_count:add' ? await uncountedOf(db, account_id, state) : 0;
  const counted = botCommandCount.decide(state, { type, command_id, account_id, uncounted });
  if (counted.length === 0) return [];
  const expected = revision === -1 ? 'none' : revision;
  return [{ stream, expected, events: newEvents(context, `${stream}\n${command_id}\n${type}`, counted) }];
}

/** Number of commands that are older than the counting. */
export async function uncountedOf(
  db: Pick<Queryable, 'query'>,
  account_id: string | null,
  counted: ReadonlySet<string>,
): Promise<number> {
  const [of, values, name] =
    account_id === null
      ? ['is null', [], 'global-bot-command-ids']
      : ['= $1', [account_id], 'bot-command-ids-of-account'];
  const rows = await db.query<{ id: string }>(`select id from bot_commands where account_id ${of}`, values, name);
  return rows.filter(({ id }) => !counted.has(id)).length;
}
