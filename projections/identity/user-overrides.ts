import { USER_OVERRIDE_EVENTS } from '../../domain/identity/user-overrides';
import { sql } from '../../kernel/sql';
import { eventProjection, lastPer } from '../runtime/drive/handlers';

/** Overrides of operators for one user; a user without overrides has no row. */
export const userOverrides = eventProjection({
  name: 'user-overrides',
  version: 1,
  tables: ['user_overrides'],
  rights: true,
  events: [USER_OVERRIDE_EVENTS],
  on: {
    'user_override:account_creation_set': lastPer(
      ['user_id'],
      sql`
      insert into user_overrides (user_id, account_creation) select user_id, override from e
      on conflict (user_id) do update set account_creation = excluded.account_creation`,
    ),
    'user_override:max_accounts_set': lastPer(
      ['user_id'],
      sql`
      insert into user_overrides (user_id, max_accounts) select user_id, max_accounts from e
      on conflict (user_id) do update set max_accounts = excluded.max_accounts`,
    ),
  },
});
