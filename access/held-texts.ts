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
): Promise<'many' | 'few'> {
  const found = await db.query(
    `select 1 from (select * from ${of} order by created_at desc, id desc limit ${SAMPLE}) newest ${joins}
     where ${holds} limit ${FREQUENT}`,
    [text],
    `how-many-${of}`,
  );
  return found.length === FREQUENT ? 'many' : 'few';
}
