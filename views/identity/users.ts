import { z } from 'zod';
import { ACCOUNT_PERMISSIONS, ADMIN_PERMISSIONS, expandGrants } from '../../domain/common/permissions';
import { AccountMembership, accountsOf } from '../accounts/accounts';
import type { Caller } from '../../access/authentication/caller';
import { FeatureStatus } from '../operators/feature-flags';
import { accountCreation, enabledOf, featureStatuses } from '../../access/authorization/features';
import { LoginConnection, offeredLoginsOf } from './login-connections';
import { accountAllowance } from '../../access/authorization/plan-limits';
import { personal } from '../../services/identity/profiles';
import type { Services } from '../../app/services';

/** The caller's own profile and permissions. Source: spec doc2 §2.3. */
export const Me = z
  .object({
    ...personal,
    active_account_id: z.uuid().nullable(),
    accounts: z.array(AccountMembership).describe('Oldest membership first'),
    permissions: z.array(z.string()).describe('On the active account'),
    admin_permissions: z.array(z.string()),
    user_permissions: z.array(z.string()).describe('Whatever the account'),
    login_connections: z.array(LoginConnection).describe('Of providers that may be logged in with'),
    enabled_features: z.array(z.string()).describe('Keys of the features that the active account has'),
    feature_statuses: z.array(FeatureStatus).describe('Of the active account, and whether the user may make accounts'),
    token: z.string().optional().describe('Access JWT for another account, where this call switched to it'),
    owned_account_count: z.int(),
    max_accounts: z.int(),
    streamer_mode: z.boolean(),
    is_developer: z.boolean(),
    extension_dev_mode: z.boolean(),
  })
  .meta({ id: 'MeResult' });
export type Me = z.output<typeof Me>;

/** Maximum of GraphQL's `Int`. */
const MOST = 2 ** 31 - 1;

/** Reads the caller's own profile with concurrent queries. */
export async function meOf(
  { db, features }: Pick<Services, 'db' | 'features'>,
  caller: Caller & { user_id: string },
  token: string | null = null,
): Promise<Me> {
  const { user_id, account_id } = caller;
  const [[person], accounts, statuses, creation, allowance, login_connections] = await Promise.all([
    db.query<Pick<Me, 'display_name' | 'email' | 'avatar_url' | 'created_at' | 'streamer_mode' | 'extension_dev_mode'>>(
      `select coalesce(p.display_name, '') as display_name, p.email, p.avatar_url, u.created_at,
         coalesce(s.streamer_mode, false) as streamer_mode, coalesce(s.extension_dev_mode, false) as extension_dev_mode
       from users u left join profiles p on p.user_id = u.id left join user_preferences s on s.user_id = u.id
       where u.id = $1`,
      [user_id],
      'me',
    ),
    accountsOf(db, user_id),
    account_id === null ? [] : featureStatuses(db, account_id),
    accountCreation(db, user_id),
    accountAllowance(db, user_id),
    offeredLoginsOf({ db, features }, user_id),
  ]);
  return {
    id: user_id,
    ...person!,
    active_account_id: account_id,
    accounts,
    permissions: expandGrants(caller.permissions, ACCOUNT_PERMISSIONS),
    admin_permissions: expandGrants(caller.admin_permissions, ADMIN_PERMISSIONS),
    user_permissions: [...caller.user_permissions].sort(),
    login_connections,
    enabled_features: enabledOf(statuses),
    feature_statuses: [...statuses, creation],
    ...(token !== null && { token }),
    owned_account_count: allowance.owned,
    max_accounts: Math.min(allowance.max_accounts, MOST),
    is_developer: person!.extension_dev_mode,
  };
}
