import type { Queryable } from '../../engines/postgres/port';

/** SQL: whether a person's name or address, in `profiles p`, contains a text, case-insensitive. */
export const personMatches = (text: string): string =>
  `(position(lower(${text}) in lower(p.display_name)) > 0 or position(lower(${text}) in lower(p.email)) > 0)`;
/** SQL: prefilter of {@link personMatches} by the index `profiles_pieces`; may match too much. */
export const personMatchesTrigrams = (text: string): string =>
  `text_pieces(p.display_name || ' ' || coalesce(p.email, '')) @> text_pieces(${text}, true)`;
/** SQL: whether an account's own name contains a text. */
export const accountMatches = (text: string, accounts = 'a'): string =>
  `position(lower(${text}) in lower(${accounts}.name)) > 0`;
export const accountMatchesTrigrams = (text: string): string => `text_pieces(a.name) @> text_pieces(${text}, true)`;
/** SQL: whether a person's name, without the address, contains a text. */
export const nameMatches = (text: string): string => `position(lower(${text}) in lower(p.display_name)) > 0`;
/** SQL: whether an account's own name or its owner's contains a text. */
export const accountOrOwnerMatches = (text: string): string => `(${accountMatches(text)} or ${nameMatches(text)})`;

/** Query of accounts by their name or by `person` of their owner; uses the indexes, which suits rare texts. */
export const accountsMatching = (text: string, person: string): string => `
  select a.id, a.created_at from accounts a where ${accountMatchesTrigrams(text)} and ${accountMatches(text)}
  union
  select a.id, a.created_at from profiles p join accounts a on a.owner_id = p.user_id
  where ${personMatchesTrigrams(text)} and ${person}`;

/**
 * Arguments of {@link estimateMatchCount} for accounts whose own name, or `person` of their owner, contains a text
 * ($1).
 */
export const newestAccounts = (person: string) => ({
  of: 'accounts' as const,
  joins: 'left join profiles p on p.user_id = newest.owner_id',
  holds: `${accountMatches('$1', 'newest')} or ${person}`,
});

/** A text that {@link FREQUENT} of the newest SAMPLE rows contain counts as frequent. */
const SAMPLE = 1000;
const FREQUENT = 20;

/**
 * Whether many rows contain a text ($1). A frequent text is found faster by a scan of the newest rows, because a page
 * is soon full and an index would name most rows.
 */
export async function estimateMatchCount(
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

/** Whether few accounts are {@link accountOrOwnerMatches}: the query then starts from {@link namedAccounts}. */
export const isRareTerm = async (db: Queryable, text: string): Promise<boolean> =>
  text !== '' && (await estimateMatchCount(db, newestAccounts(nameMatches('$1')), text, 'how-many-named')) === 'few';

export const namedAccounts = (text: string): string => accountsMatching(text, nameMatches(text));
