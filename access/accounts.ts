import { z } from 'zod';
import { account, accountStream } from '../domain/accounts';
import { ownership, ownershipStream } from '../domain/ownerships';
import { FREE_PLAN_ID } from '../domain/plan-limits';
import type { EventStore } from '../engines/event-store/port';
import type { Queryable } from '../engines/postgres/port';
import { notFound } from '../kernel/operation-errors';
import { load } from './states';

const dateTime = z.string().meta({ format: 'date-time' });

/** Source: spec extra-facts §3. */
export const Account = z
  .object({
    id: z.uuid(),
    name: z.string(),
    description: z.string().nullable(),
    plan: z.string().describe("The plan's slug"),
    owner_id: z.uuid(),
    avatar_url: z.string().nullable().describe("Of the primary login connection, else the owner's"),
    primary_login_connection_id: z.uuid().nullable(),
    created_at: dateTime,
    updated_at: dateTime,
  })
  .meta({ id: 'Account' });
export type Account = z.output<typeof Account>;

/** One of the caller's own accounts. */
export const AccountMembership = Account.extend({
  role: z
    .object({ id: z.uuid(), slug: z.string(), name: z.string(), color: z.string() })
    .meta({ id: 'AccountMembershipRole' }),
  is_owner: z.boolean(),
  joined_at: dateTime,
}).meta({ id: 'AccountMembership' });
export type AccountMembership = z.output<typeof AccountMembership>;

/** The name of an account when neither it nor its owner has one. */
const NAMELESS = 'Account';

/** An account's own name, else its owner's, from `accounts a` and the owner's `profiles p`. */
export const ACCOUNT_NAME = `coalesce(a.name, p.display_name, '${NAMELESS}')`;

const COLUMNS = `a.id, ${ACCOUNT_NAME} as name, a.description, coalesce(pl.slug, 'free') as plan, a.owner_id,
  coalesce(g.avatar_url, p.avatar_url) as avatar_url, a.primary_login_connection_id, a.created_at,
    coalesce(a.updated_at, a.created_at) as updated_at`;
const JOINS = `left join profiles p on p.user_id = a.owner_id
  left join login_grants g on g.login_connection_id = a.primary_login_connection_id
  left join account_plans ap on ap.account_id = a.id
  left join plans pl on pl.id = coalesce(ap.plan_id, '${FREE_PLAN_ID}')`;

export async function accountOf(db: Queryable, account_id: string): Promise<Account | null> {
  const [row] = await db.query<Account>(
    `select ${COLUMNS} from accounts a ${JOINS} where a.id = $1`,
    [account_id],
    'account',
  );
  return row ?? null;
}

/** The accounts that a user is a member of, oldest membership first. */
export function accountsOf(db: Queryable, user_id: string): Promise<AccountMembership[]> {
  return db.query<AccountMembership>(
    `select ${COLUMNS}, a.owner_id = m.user_id as is_owner, m.joined_at,
       jsonb_build_object('id', r.id, 'slug', r.slug, 'name', r.name, 'color', r.color) as role
     from account_members m join accounts a on a.id = m.account_id join account_roles r on r.id = m.role_id ${JOINS}
     where m.user_id = $1 order by m.joined_at, a.id`,
    [user_id],
    'accounts-of-user',
  );
}

/** What an account without a name of its own is called. */
export const nameOf = (name: string | null, owner: { display_name: string } | null): string =>
  name ?? owner?.display_name ?? NAMELESS;

/** Which accounts are the user's, and which were counted as theirs and are no more, as the accounts themselves say. */
export async function ownershipsOf(
  { db, events }: { db: Queryable; events: EventStore },
  user_id: string,
): Promise<{ owned: string[]; ended: string[] }> {
  const opened = await load(events, ownership, ownershipStream(user_id));
  const rows = await db.query<{ id: string }>(
    'select id from accounts where owner_id = $1',
    [user_id],
    'accounts-owned',
  );
  const found = { owned: [] as string[], ended: [] as string[] };
  for (const id of new Set([...(opened?.state ?? []), ...rows.map((row) => row.id)])) {
    const known = await load(events, account, accountStream(id));
    const theirs = known !== null && !known.state.dissolved && known.state.owner_id === user_id;
    found[theirs ? 'owned' : 'ended'].push(id);
  }
  return found;
}

/** An account that was dissolved while the request was on its way. */
export const ACCOUNT_NOT_FOUND = { ACCOUNT_NOT_FOUND: notFound('Account not found') };
