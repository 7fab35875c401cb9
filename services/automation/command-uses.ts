import type { Queryable } from '../../engines/postgres/port';

/** A use of a command that asks for its cooldowns. */
export interface CommandUse {
  account_id: string;
  command_id: string;
  /** Keyed hash of the person. */
  person: string;
  /** Time of the line, in milliseconds since 1970. */
  at_ms: number;
  /** Seconds. */
  cooldown_global: number;
  /** Seconds. */
  cooldown_user: number;
}

/** Ordered, so that no two writers deadlock; a row that was there is locked by {@link READ} alone. */
const MAKE = `
  with asked as (
    select distinct a.account_id::uuid as account_id, a.command_id::uuid as command_id
    from unnest($1::text[], $2::text[]) a (account_id, command_id)
  ), made as (
    insert into bot_command_uses (account_id, command_id) select account_id, command_id from asked order by 1, 2
    on conflict do nothing
  ) select 1 as one`;
/** A locked row decides about the uses of its command. */
const READ = `
  select u.account_id, u.command_id, u.use_count::int as use_count,
    (extract(epoch from u.last_used_at) * 1000)::float8 as last_ms
  from bot_command_uses u
  where (u.account_id, u.command_id) in (select a::uuid, c::uuid from unnest($1::text[], $2::text[]) asked (a, c))
  order by u.account_id, u.command_id for update`;
const READ_PERSONS = `
  select u.account_id, u.command_id, u.person, (extract(epoch from u.used_at) * 1000)::float8 as last_ms
  from bot_command_user_uses u
  where (u.account_id, u.command_id, u.person)
    in (select a::uuid, c::uuid, p from unnest($1::text[], $2::text[], $3::text[]) asked (a, c, p))`;
const WRITE = `
  update bot_command_uses u set use_count = n.use_count, last_used_at = to_timestamp(n.last_ms / 1000)
  from json_to_recordset($1::json) n (account_id uuid, command_id uuid, use_count bigint, last_ms float8)
  where u.account_id = n.account_id and u.command_id = n.command_id`;
const WRITE_PERSONS = `
  insert into bot_command_user_uses (account_id, command_id, person, used_at, expires_at)
  select account_id, command_id, person, to_timestamp(last_ms / 1000), to_timestamp(last_ms / 1000 + seconds)
  from json_to_recordset($1::json) n (account_id uuid, command_id uuid, person text, last_ms float8, seconds integer)
  order by account_id, command_id, person
  on conflict (account_id, command_id, person) do update set used_at = excluded.used_at, expires_at = excluded.expires_at`;

interface Counted extends Pick<CommandUse, 'account_id' | 'command_id'> {
  use_count: number;
  last_ms: number | null;
}
interface ByPerson extends Pick<CommandUse, 'account_id' | 'command_id' | 'person'> {
  last_ms: number;
  seconds: number;
}

const commandKey = ({ account_id, command_id }: Pick<CommandUse, 'account_id' | 'command_id'>) =>
  `${account_id} ${command_id}`;
const personKey = (use: Pick<CommandUse, 'account_id' | 'command_id' | 'person'>) => `${commandKey(use)} ${use.person}`;

const isOver = (last_ms: number | null | undefined, seconds: number, at_ms: number): boolean =>
  seconds === 0 || last_ms === null || last_ms === undefined || at_ms >= last_ms + seconds * 1000;

/**
 * Decides uses in their order: a use within a cooldown, or of a deleted command, is refused (null); any other counts,
 * and its number is returned.
 */
export async function takeUses(tx: Queryable, uses: readonly CommandUse[]): Promise<(number | null)[]> {
  if (uses.length === 0) return [];
  const of = [uses.map(({ account_id }) => account_id), uses.map(({ command_id }) => command_id)];
  await tx.query(MAKE, of, 'bot-command-uses-made');
  const rows = await tx.query<Counted & Record<string, unknown>>(READ, of, 'bot-command-uses');
  const counted = new Map(rows.map((row) => [commandKey(row), row]));
  const by_person = new Map<string, ByPerson>();
  const personal = uses.filter(({ cooldown_user }) => cooldown_user > 0);
  if (personal.length > 0) {
    const read = [
      personal.map(({ account_id }) => account_id),
      personal.map(({ command_id }) => command_id),
      personal.map(({ person }) => person),
    ];
    const known = await tx.query<ByPerson & Record<string, unknown>>(READ_PERSONS, read, 'bot-command-user-uses');
    for (const row of known) by_person.set(personKey(row), row);
  }
  const changed = new Set<Counted>();
  const changed_persons = new Map<string, ByPerson>();
  const numbers = uses.map((use) => {
    const row = counted.get(commandKey(use));
    // The end of the command deleted it meanwhile.
    if (row === undefined) return null;
    const last = by_person.get(personKey(use))?.last_ms;
    if (!isOver(row.last_ms, use.cooldown_global, use.at_ms) || !isOver(last, use.cooldown_user, use.at_ms))
      return null;
    row.use_count += 1;
    row.last_ms = use.at_ms;
    changed.add(row);
    if (use.cooldown_user > 0) {
      const { account_id, command_id, person, at_ms, cooldown_user } = use;
      const taken = { account_id, command_id, person, last_ms: at_ms, seconds: cooldown_user };
      by_person.set(personKey(use), taken);
      changed_persons.set(personKey(use), taken);
    }
    return row.use_count;
  });
  if (changed.size > 0) await tx.query(WRITE, [JSON.stringify([...changed])], 'bot-command-uses-write');
  if (changed_persons.size > 0)
    await tx.query(WRITE_PERSONS, [JSON.stringify([...changed_persons.values()])], 'bot-command-user-uses-write');
  return numbers;
}

/** Statement that deletes such rows of a table in the order in which {@link takeUses} locks them. */
const deleting = (table: string, key: string, condition: string): string => `
  with gone as (select ${key} from ${table} u where ${condition} order by ${key} for update)
  delete from ${table} u using gone where (${columns('u', key)}) = (${columns('gone', key)})`;
const columns = (of: string, key: string): string =>
  key
    .split(', ')
    .map((name) => `${of}.${name}`)
    .join(', ');
const OF_ACCOUNT = 'account_id, command_id';
const OF_PERSON = 'account_id, command_id, person';

/** Statements that delete the uses of a command ($1), or of an account ($1), in this order. */
export const deleteUsesOf = (member: 'command_id' | 'account_id'): readonly string[] => [
  deleting('bot_command_uses', OF_ACCOUNT, `${member} = $1`),
  deleting('bot_command_user_uses', OF_PERSON, `${member} = $1`),
];
/** Statement that deletes the uses of a person ($1). */
export const DELETE_USES_OF_PERSON = deleting('bot_command_user_uses', OF_PERSON, 'person = $1');

/** Rows that one statement of a sweep deletes: a use of the same row waits for its end. */
const BATCH = 5_000;

/** Deletes all such rows of a table, in bounded statements. Returns their number. */
async function sweep(
  db: Pick<Queryable, 'query'>,
  table: string,
  key: string,
  conditionOf: (row: string) => string,
): Promise<number> {
  const some = `select ${columns('o', key)} from ${table} o where ${conditionOf('o')} limit ${BATCH}`;
  // The condition again: a use may have changed the row before its lock.
  const statement = deleting(table, key, `(${columns('u', key)}) in (${some}) and ${conditionOf('u')}`);
  for (let swept = 0; ;) {
    const rows = await db.query(`${statement} returning 1 as one`);
    swept += rows.length;
    if (rows.length < BATCH) return swept;
  }
}

const isOverAt = (row: string): string => `${row}.expires_at < now()`;
const isOrphan = (row: string): string => `not exists (select from bot_commands c where c.id = ${row}.command_id)`;

/** Deletes cooldowns of persons that are over, and counts of deleted commands. Returns their number. */
export async function sweepCommandUses(db: Pick<Queryable, 'query'>): Promise<number> {
  const over = await sweep(db, 'bot_command_user_uses', OF_PERSON, isOverAt);
  return over + (await sweep(db, 'bot_command_uses', OF_ACCOUNT, isOrphan));
}
