import { z } from 'zod';
import type { Account } from '../../domain/accounts/accounts';
import { DomainError } from '../../kernel/errors';
import { notFound } from '../../kernel/operations/errors';
import type { Rows } from '../../kernel/operations/pages';
import type { Queryable } from '../../engines/postgres/port';
import { readProfile } from '../../services/identity/profiles';
import type { Services } from '../../app/services';

export const MEMBER_NOT_FOUND = { MEMBER_NOT_FOUND: notFound('Member not found') };

/** A member as the other members see them. Source: spec extra-facts §4. */
export const Member = z
  .object({
    id: z.uuid().describe('Of the membership'),
    user_id: z.uuid(),
    display_name: z.string().nullable(),
    email: z.string().nullable(),
    avatar_url: z.string().nullable(),
    role: z
      .object({
        id: z.uuid(),
        slug: z.string(),
        name: z.string(),
        description: z.string().nullable(),
        color: z.string(),
      })
      .meta({ id: 'MemberRole' }),
    is_owner: z.boolean(),
    joined_at: z.string().meta({ format: 'date-time' }),
  })
  .meta({ id: 'Member' });
export type Member = z.output<typeof Member>;

/** Members of an account, oldest first; with `user_id` only that one. */
export async function membersOf(
  db: Queryable,
  account_id: string,
  { limit, offset }: Rows,
  user_id: string | null = null,
): Promise<{ items: Member[]; total: number }> {
  const rows = await db.query<Member & { total: number }>(
    `select counted.total, page.*
     from (select count(*)::int as total from account_members where account_id = $1) counted
     left join (
       select m.id, m.user_id, p.display_name, p.email, p.avatar_url, m.joined_at, a.owner_id = m.user_id as is_owner,
         jsonb_build_object('id', r.id, 'slug', r.slug, 'name', r.name, 'description', r.description, 'color', r.color)
           as role
       from (
         select * from account_members where account_id = $1 and ($2::uuid is null or user_id = $2)
         order by joined_at, user_id limit $3 offset $4
       ) m
       join accounts a on a.id = m.account_id join account_roles r on r.id = m.role_id
       left join profiles p on p.user_id = m.user_id
     ) page on true order by joined_at, user_id`,
    [account_id, user_id, limit, offset],
    'account-members',
  );
  const items = rows.flatMap(({ total: _total, ...member }) => (member.user_id === null ? [] : [member]));
  return { items, total: rows[0]!.total };
}

/**
 * Announces the change of a member's rights, at once on this node, and returns the member as decided, even when the
 * read model is behind.
 * @throws DomainError of {@link MEMBER_NOT_FOUND} for a repeated request whose member has left since
 */
export async function changedMember(
  { db, access }: Pick<Services, 'db' | 'access'>,
  { members, roles, owner_id }: Pick<Account, 'members' | 'roles' | 'owner_id'>,
  { account_id, user_id, now }: { account_id: string; user_id: string; now: number },
): Promise<Member> {
  await access.announce({ account_id, user_id });
  const member = members.get(user_id);
  if (member === undefined) throw new DomainError('MEMBER_NOT_FOUND', { user_id });
  const { role_id, membership_id } = member;
  const { slug, name, description, color } = roles.get(role_id)!;
  const role = { id: role_id, slug, name, description, color };
  const { items } = await membersOf(db, account_id, { limit: 1, offset: 0 }, user_id);
  if (items[0] !== undefined) return { ...items[0], role };
  const { display_name = null, email = null, avatar_url = null } = (await readProfile(db, user_id)) ?? {};
  const joined_at = new Date(now).toISOString();
  return {
    id: membership_id,
    user_id,
    display_name,
    email,
    avatar_url,
    role,
    is_owner: user_id === owner_id,
    joined_at,
  };
}
