import {
  MAX_VARIABLE_TEXT,
  MAX_VARIABLES,
  type VariableType,
  variableType,
  variableValue,
  type VariableValue,
} from '../../../domain/automation/automation-variables';
import { LOCK_PAIRS } from '../../../engines/locks/port';
import type { Queryable } from '../../../engines/postgres/port';
import type { PersonalTexts, SealedText } from '../../../privacy/subject-keys/port';

export interface Variable {
  name: string;
  type: VariableType;
  value: VariableValue;
  updated_at: string;
}
interface VariableOf {
  account_id: string;
  name: string;
}
interface Row extends Omit<Variable, 'value'> {
  value: string | null;
  key_id: string | null;
  sealed: string | null;
}

/** Names the row to which a sealed value belongs. */
const contextOf = ({ account_id, name }: VariableOf): string => `automation-variable ${account_id} ${name}`;

/** Variables of an account by name; a value whose person was erased is left out. `names`: default all. */
export async function readVariables(
  { db, texts }: { db: Pick<Queryable, 'query'>; texts: Pick<PersonalTexts, 'openAll'> },
  account_id: string,
  names: readonly string[] | null = null,
): Promise<Variable[]> {
  const rows = await db.query<Row & Record<string, unknown>>(
    `select name, type, value, key_id, sealed, updated_at from automation_variables
     where account_id = $1 and type is not null and ($2::text[] is null or name = any($2)) order by name`,
    [account_id, names],
    'automation-variables',
  );
  const sealed = rows.flatMap(({ name, key_id, sealed: text }) =>
    key_id === null ? [] : [{ key_id, sealed: text!, context: contextOf({ account_id, name }) }],
  );
  const opened = sealed.length === 0 ? [] : await texts.openAll(sealed);
  return rows.flatMap(({ name, type, value, key_id, updated_at }) => {
    const shown = key_id === null ? (JSON.parse(value!) as VariableValue) : opened.shift()!;
    return shown === null ? [] : [{ name, type, value: shown, updated_at }];
  });
}

export async function hasVariable(db: Pick<Queryable, 'query'>, { account_id, name }: VariableOf): Promise<boolean> {
  const rows = await db.query(
    'select 1 as one from automation_variables where account_id = $1 and name = $2 and type is not null',
    [account_id, name],
    'automation-variable-is-there',
  );
  return rows.length > 0;
}

/** Seconds for which a claimed name without a value counts. */
const CLAIM_SECONDS = 60;

/**
 * Claims a name in this transaction, so that the limit holds among concurrent writers. False when the account has as
 * many variables as it may have, or was dissolved.
 */
export async function claimVariable(tx: Queryable, { account_id, name }: VariableOf): Promise<boolean> {
  const has = 'select 1 as one from automation_variables where account_id = $1 and name = $2 and type is not null';
  const locked = await tx.query(`${has} for update`, [account_id, name], 'automation-variable-lock');
  if (locked.length > 0) return true;
  const lock = 'select pg_advisory_xact_lock($1::int, hashtext($2))';
  await tx.query(lock, [LOCK_PAIRS.automation_variables, account_id]);
  await tx.query(
    `delete from automation_variables where account_id = $1 and type is null and name <> $2
       and updated_at < clock_timestamp() - make_interval(secs => ${CLAIM_SECONDS})`,
    [account_id, name],
    'automation-variable-claims',
  );
  const claimed = await tx.query(
    `insert into automation_variables (account_id, name) select $1, $2
     where not exists (select from dissolved_accounts where account_id = $1)
       and (select count(*) from automation_variables where account_id = $1 and name <> $2) < ${MAX_VARIABLES}
     on conflict (account_id, name) do update set updated_at = clock_timestamp() returning 1 as one`,
    [account_id, name],
    'automation-variable-claim',
  );
  return claimed.length > 0;
}

/** A text about a person, sealed under the person's key. */
export interface PersonalValue extends SealedText {
  text: string;
  /** Keyed hash of the person, by which an erasure finds the row. */
  person: string;
  /** The text is the id or the name of the person: it stays a text. */
  is_identity: boolean;
}

/** Seals the text of a run for {@link setVariable}. `subject`: the person of the run's cause (`twitch:123`). */
export async function sealVariable(
  texts: Pick<PersonalTexts, 'seal'>,
  variable: VariableOf,
  { subject, ...value }: { subject: string } & Pick<PersonalValue, 'text' | 'person' | 'is_identity'>,
): Promise<PersonalValue> {
  return { ...(await texts.seal(subject, value.text, contextOf(variable))), ...value };
}

/** Error codes of a step that writes a variable. */
export type VariableError = 'TOO_MANY_VARIABLES' | 'TEXT_TOO_LONG' | 'NOT_A_NUMBER' | 'NUMBER_TOO_LARGE';
type Written = { type: VariableType; value: VariableValue } | { error: VariableError };

const WRITE = `update automation_variables set type = $3, value = $4, key_id = $5, sealed = $6, person = $7,
  updated_at = clock_timestamp() where account_id = $1 and name = $2`;

/**
 * Writes a variable for a run, and creates a missing one. It belongs into the effect of the step's job, which happens
 * once over all tries. A personal text that reads as a number or boolean is stored as such, unsealed, except for ids
 * and names.
 */
export async function setVariable(
  tx: Queryable,
  variable: VariableOf,
  value: VariableValue | PersonalValue,
): Promise<Written> {
  const personal = typeof value === 'object' ? value : null;
  const text = personal?.text ?? value;
  if (typeof text === 'string' && text.length > MAX_VARIABLE_TEXT) return { error: 'TEXT_TOO_LONG' };
  if (!(await claimVariable(tx, variable))) return { error: 'TOO_MANY_VARIABLES' };
  const { account_id, name } = variable;
  const present = (await lockedRow(tx, variable))?.type ?? undefined;
  const is_read = typeof text === 'string' && personal?.is_identity !== true;
  const written = is_read ? variableValue(text, present) : (text as VariableValue);
  const type = variableType(written);
  const sealed = personal !== null && type === 'text' ? personal : null;
  const stored = sealed === null ? JSON.stringify(written) : null;
  const columns = [type, stored, sealed?.key_id ?? null, sealed?.sealed ?? null, sealed?.person ?? null];
  await tx.query(WRITE, [account_id, name, ...columns], 'automation-variable-write');
  return { type, value: written };
}

/**
 * Adds to a number for a run, and creates a missing one at 0. It belongs into the effect of the step's job, which
 * happens once over all tries.
 */
export async function addToVariable(tx: Queryable, variable: VariableOf, amount: number): Promise<Written> {
  if (!(await claimVariable(tx, variable))) return { error: 'TOO_MANY_VARIABLES' };
  const { account_id, name } = variable;
  const row = (await lockedRow(tx, variable))!;
  if (row.type !== null && row.type !== 'number') return { error: 'NOT_A_NUMBER' };
  const sum = (row.type === null ? 0 : Number(row.value)) + amount;
  if (!Number.isFinite(sum)) return { error: 'NUMBER_TOO_LARGE' };
  const columns = ['number', JSON.stringify(sum), null, null, null];
  await tx.query(WRITE, [account_id, name, ...columns], 'automation-variable-write');
  return { type: 'number', value: sum };
}

/** The claimed row. */
async function lockedRow(tx: Queryable, { account_id, name }: VariableOf) {
  const [row] = await tx.query<{ type: VariableType | null; value: string | null }>(
    'select type, value from automation_variables where account_id = $1 and name = $2 for update',
    [account_id, name],
    'automation-variable-row',
  );
  return row;
}
