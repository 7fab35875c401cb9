import { createHash, randomBytes } from 'node:crypto';
import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import type { Rows } from '../../kernel/operations/pages';
import { ACCOUNT_NAME } from './accounts';

const dateTime = z.string().meta({ format: 'date-time' });
const role = z
  .object({ id: z.uuid(), slug: z.string(), name: z.string(), description: z.string().nullable(), color: z.string() })
  .meta({ id: 'InviteRole' });

/** 128 bits as 22 characters for a link. */
export function generateInviteCode(): { code: string; hash: string; prefix: string } {
  const code = randomBytes(16).toString('base64url');
  return { code, hash: hashInviteCode(code), prefix: code.slice(0, 4) };
}

/** Codes are stored as hashes, as every credential: a copy of the database grants no access. */
export const hashInviteCode = (code: string): string => createHash('sha256').update(code).digest('hex');

/** An invite as members see it; never its code. Source: spec extra-facts §4. */
export const Invite = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    code_prefix: z.string().describe('The first characters of the code'),
    role,
    created_by: z.uuid().nullable().describe('Null where a key of no person made it'),
    max_uses: z.int(),
    uses: z.int(),
    expires_at: dateTime.nullable(),
    is_expired: z.boolean(),
    is_used_up: z.boolean(),
    created_at: dateTime,
  })
  .meta({ id: 'Invite' });
export type Invite = z.output<typeof Invite>;

/** Invite as shown to anybody with the code. Source: spec extra-facts §4. */
export const InvitePreview = z
  .object({
    account_name: z.string(),
    role: role.pick({ name: true, description: true, color: true }).meta({ id: 'InvitePreviewRole' }),
    expires_at: dateTime.nullable(),
    is_expired: z.boolean(),
    is_used_up: z.boolean(),
  })
  .meta({ id: 'InvitePreview' });
export type InvitePreview = z.output<typeof InvitePreview>;

const STATE = `i.expires_at, coalesce(i.expires_at <= now(), false) as is_expired, i.uses >= i.max_uses as is_used_up`;
const ROLE = `jsonb_build_object(
  'id', r.id, 'slug', r.slug, 'name', r.name, 'description', r.description, 'color', r.color)`;

/** Invites of an account, newest first; with `id` only that one. */
export async function invitesOf(
  db: Queryable,
  account_id: string,
  { limit, offset }: Rows,
  id: string | null = null,
): Promise<{ items: Invite[]; total: number }> {
  const rows = await db.query<Invite & { total: number }>(
    `select counted.total, page.*
     from (select count(*)::int as total from account_invites where account_id = $1) counted
     left join (
       select i.id, i.account_id, i.code_prefix, i.made_by as created_by, i.max_uses, i.uses, i.created_at, ${STATE},
         ${ROLE} as role
       from account_invites i join account_roles r on r.id = i.role_id
       where i.account_id = $1 and ($2::uuid is null or i.id = $2)
       order by i.created_at desc, i.id desc limit $3 offset $4
     ) page on true order by page.created_at desc, page.id desc`,
    [account_id, id, limit, offset],
    'account-invites',
  );
  const items = rows.flatMap(({ total: _total, ...invite }) => (invite.id === null ? [] : [invite]));
  return { items, total: rows[0]!.total };
}

export async function inviteOfCode(db: Queryable, code: string): Promise<InvitePreview | null> {
  const [row] = await db.query<InvitePreview>(
    `select ${ACCOUNT_NAME} as account_name, ${STATE},
       jsonb_build_object('name', r.name, 'description', r.description, 'color', r.color) as role
     from account_invites i join accounts a on a.id = i.account_id join account_roles r on r.id = i.role_id
     left join profiles p on p.user_id = a.owner_id where i.code_hash = $1`,
    [hashInviteCode(code)],
    'invite-of-code',
  );
  return row ?? null;
}

/** Account and id of an invite by its code; null for an unknown code. */
export async function placeOfInvite(
  db: Queryable,
  code: string,
): Promise<{ account_id: string; invite_id: string } | null> {
  const [row] = await db.query<{ account_id: string; invite_id: string }>(
    'select account_id, id as invite_id from account_invites where code_hash = $1',
    [hashInviteCode(code)],
    'invite-place',
  );
  return row ?? null;
}
