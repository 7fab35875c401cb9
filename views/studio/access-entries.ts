import { z } from 'zod';
import { ACCESS_ROLES, type AccessRole } from '../../domain/studio/access-entries';
import type { Queryable } from '../../engines/postgres/port';

type Kind = 'widget' | 'overlay';

/** Members of an entry besides the id of its widget or overlay. Source: spec doc2 §2.13. */
export const entryMembers = {
  user_id: z.uuid(),
  user_name: z.string().nullable(),
  user_avatar: z.string().nullable(),
  role: z.enum(ACCESS_ROLES),
  granted_by: z.uuid().nullable(),
  created_at: z.string().meta({ format: 'date-time' }),
};

interface Entry extends Record<string, unknown> {
  id: string;
  user_id: string;
  user_name: string | null;
  user_avatar: string | null;
  role: AccessRole;
  granted_by: string | null;
  created_at: string;
}

/** Entries of a widget or an overlay, oldest first; with `user_id` that of one member. */
export const entriesOf = (db: Queryable, kind: Kind, id: string, user_id: string | null = null): Promise<Entry[]> =>
  db.query<Entry>(
    `select x.id, x.user_id, p.display_name as user_name, p.avatar_url as user_avatar, x.role, x.granted_by,
       x.created_at
     from ${kind}_access x left join profiles p on p.user_id = x.user_id
     where x.${kind}_id = $1 and ($2::uuid is null or x.user_id = $2) order by x.created_at, x.user_id`,
    [id, user_id],
    `${kind}-access`,
  );

/** A member who may be bound by an entry. */
export const candidateMembers = {
  id: z.uuid(),
  display_name: z.string().nullable(),
  avatar_url: z.string().nullable(),
};
interface Candidate extends Record<string, unknown> {
  id: string;
  display_name: string | null;
  avatar_url: string | null;
}

/** Members without an entry whom one may bind: all but the owner. */
export const candidatesFor = (db: Queryable, kind: Kind, account_id: string, id: string): Promise<Candidate[]> =>
  db.query<Candidate>(
    `select m.user_id as id, p.display_name, p.avatar_url
     from account_members m join accounts a on a.id = m.account_id left join profiles p on p.user_id = m.user_id
     where m.account_id = $1 and a.owner_id <> m.user_id
       and not exists (select from ${kind}_access x where x.${kind}_id = $2 and x.user_id = m.user_id)
     order by m.joined_at, m.user_id`,
    [account_id, id],
    `${kind}-candidates`,
  );

/** Whether the user is a member of the account. */
export async function isMember(db: Queryable, account_id: string, user_id: string): Promise<boolean> {
  const member = 'select 1 from account_members where account_id = $1 and user_id = $2';
  return (await db.query(member, [account_id, user_id], 'is-member')).length > 0;
}
