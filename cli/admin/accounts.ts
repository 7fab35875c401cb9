import { v7 } from 'uuid';
import { handle } from '../../app/write-path/command-handler';
import { load } from '../../app/write-path/aggregate-cache';
import { account, accountStream, type Account } from '../../domain/accounts/accounts';
import { DomainError } from '../../kernel/errors';
import { DEFAULT_ROLES } from '../../domain/common/permissions';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';
import { requireUser } from './users';

export interface NewAccount {
  owner_id: string;
  name: string;
  /** Absent: a new one. */
  account_id?: string;
}

/**
 * Creates an account with the four default roles and its owner; returns an existing account with this id. @throws
 * AdminError
 */
export async function createAccount(
  services: AdminServices,
  { owner_id, name, account_id = v7() }: NewAccount,
): Promise<{ account_id: string; created: boolean }> {
  await requireUser(services, owner_id);
  try {
    await handle(asOperator(OPERATOR), services, {
      decider: account,
      stream: accountStream(account_id),
      command: {
        type: 'account:create',
        account_id,
        name,
        owner_id,
        membership_id: v7(),
        role_ids: DEFAULT_ROLES.map(() => v7()),
        now: nowText(),
      },
    });
    return { account_id, created: true };
  } catch (error) {
    if (!(error instanceof DomainError && error.reason === 'ACCOUNT_EXISTS')) throw error;
    const present = await requireAccount(services, account_id);
    if (present.owner_id !== owner_id)
      throw new AdminError(`account ${account_id} is there already, and user ${present.owner_id} owns it`);
    return { account_id, created: false };
  }
}

/** @throws AdminError */
export async function requireAccount(services: Pick<AdminServices, 'events'>, account_id: string): Promise<Account> {
  const found = await load(services.events, account, accountStream(account_id));
  if (found === null || found.state.dissolved) throw new AdminError(`there is no account ${account_id}`);
  return found.state;
}

/**
 * Sets feature overrides (null removes one); returns all overrides of the account. @throws AdminError, DomainError
 * `UNKNOWN_FLAG`
 */
export async function setFeatures(
  services: AdminServices,
  account_id: string,
  overrides: Readonly<Record<string, boolean | null>>,
): Promise<Record<string, boolean>> {
  await requireAccount(services, account_id);
  const { state } = await handle(asOperator(OPERATOR), services, {
    decider: account,
    stream: accountStream(account_id),
    command: { type: 'account:set_feature_overrides', overrides, now: nowText() },
  });
  return Object.fromEntries([...state.overrides].sort(([a], [b]) => (a < b ? -1 : 1)));
}

/** Adds a user with this role, or changes a member's role; null ends the membership. @throws AdminError */
export async function setMembership(
  services: AdminServices,
  account_id: string,
  user_id: string,
  role: string | null,
): Promise<void> {
  await requireUser(services, user_id);
  const state = await requireAccount(services, account_id);
  if (state.owner_id === user_id)
    throw new AdminError(`user ${user_id} owns account ${account_id} and keeps that role`);
  const now = nowText();
  const there = state.members.has(user_id);
  if (role === null && !there) return;
  const role_id = role === null ? undefined : roleOf(state, account_id, role);
  await handle(asOperator(OPERATOR), services, {
    decider: account,
    stream: accountStream(account_id),
    command:
      role_id === undefined
        ? { type: 'account:remove_member', user_id, now }
        : there
          ? { type: 'account:change_member_role', user_id, role_id, now }
          : { type: 'account:add_member', membership_id: v7(), user_id, role_id, now },
  });
}

/**
 * Transfers an account to another user, for an owner who is lost. The former owner becomes a member with the named
 * role, or leaves without one. Idempotent. @throws AdminError
 */
export async function replaceOwner(
  services: AdminServices,
  account_id: string,
  user_id: string,
  former_role: string | null,
): Promise<{ account_id: string; owner_id: string; former_owner_id: string }> {
  await requireUser(services, user_id);
  const state = await requireAccount(services, account_id);
  const former_role_id = former_role === null ? null : roleOf(state, account_id, former_role);
  await handle(asOperator(OPERATOR), services, {
    decider: account,
    stream: accountStream(account_id),
    command: { type: 'account:replace_owner', user_id, membership_id: v7(), former_role_id, now: nowText() },
  });
  return { account_id, owner_id: user_id, former_owner_id: state.owner_id! };
}

/** @throws AdminError */
function roleOf({ roles }: Account, account_id: string, slug: string): string {
  const role_id = [...roles].find(([, known]) => known.slug === slug)?.[0];
  if (role_id === undefined) throw new AdminError(`account ${account_id} has no role ${slug}`);
  return role_id;
}
