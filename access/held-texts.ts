import type { Queryable } from '../engines/postgres/port';

/** Whether a person's name or address, in `profiles p`, holds a text, in whatever case. */
export const personHolds = (text: string): string =>
  `(position(lower(${text}) in lower(p.display_name)) > 0 or position(lower(${text}) in lower(p.email)) > 0)`;
/** Whether it may, as the index `profiles_pieces` says. */
export const personMayHold = (text: string): string =>
  `text_pieces(p.display_name || ' ' || coalesce(p.email, '')) @> text_pieces(${text}, true)`;
/** The same of the own names of accounts. */
export const accountHolds = (text: string, accounts = 'a'): string =>
  `position(lower(${text}) in lower(${accounts}.name)) > 0`;
export const accountMayHold = (text: string): string => `text_pieces(a.name) @> text_pieces(${text}, true)`;
/** Whether a person's name does, whatever their address. */
export const nameHolds = (text: string): string => `position(lower(${text}) in lower(p.display_name)) > 0`;
/** Whether an account's own name holds it, or its owner's. */
export const namedSo = (text: string): string => `(${accountHolds(text)} or ${nameHolds(text)})`;

/** Accounts that hold a text by their name, or by `person` of their owner: what few hold is found by the indexes. */
export const accountsHolding = (text: string, person: string): string => `
  select a.id, a.created_at from accounts a where ${accountMayHold(text)} and ${accountHolds(text)}
  union
  select a.id, a.created_at from profiles p join accounts a on a.owner_id = p.user_id
  where ${personMayHold(text)} and ${person}`;

/** What {@link howMany} asks of accounts that hold a text ($1) by their own name, or by `person` of their owner. */
export const newestAccounts = (person: string) => ({
  of: 'accounts' as const,
  joins: 'left join profiles p on p.user_id = newest.owner_id',
  holds: `${accountHolds('$1', 'newest')} or ${person}`,
});

/** Of so many of the newest rows so many hold what is held by many. */
const SAMPLE = 1000;
const FREQUENT = 20;

/**
 * Whether many rows hold a text ($1) or few: what many hold is found sooner by a look at the rows, since a page of the
 * newest is full at once and an index would name most of them.
 */
export async function howMany(
  db: Queryable,
  { of, joins, holds }: { of: 'users' | 'accounts'; joins: string; holds: string },
  text: string,
  name = `how-many-${of}`,
): Promise<'many' | 'few'> {
  const found = await db.query(
    `select 1 from (select * from ${of} order by created_at desc, id desc limit ${SAMPLE}) newest ${joins}
     where ${holds} limit ${FREQUENT}`,
    [text],
    name,
  );
  return found.length === FREQUENT ? 'many' : 'few';
}

/** Whether few accounts are {@link namedSo}: what accounts have is then looked for by {@link namedAccounts}. */
export const fewAreNamed = async (db: Queryable, text: string): Promise<boolean> =>
  text !== '' && (await howMany(db, newestAccounts(nameHolds('$1')), text, 'how-many-named')) === 'few';

export const namedAccounts = (text: string): string => accountsHolding(text, nameHolds(text));
