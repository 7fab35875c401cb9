import { ACCOUNT_PERMISSIONS } from '../domain/permissions';

const ALL: ReadonlySet<string> = new Set(ACCOUNT_PERMISSIONS);
const NONE: ReadonlySet<string> = new Set();

/** The columns of `account_roles` that say what a role grants; null where a left join found no role. */
export interface RoleRow {
  permissions: string[] | null;
  holds_all: boolean | null;
}

/** What a role grants. Source: spec doc1 §5.10. */
export const grantedBy = ({ permissions, holds_all }: RoleRow): ReadonlySet<string> =>
  holds_all ? ALL : permissions === null ? NONE : new Set(permissions);
