import { USER_OVERRIDE_EVENTS } from '../domain/user-overrides';
import { sql } from '../kernel/sql';
import { handled, last } from './runtime/handlers';

/** What operators set for one user; a user for whom they set nothing has no row. */
export const userOverrides = handled({
  name: 'user-overrides',
  version: 1,
  tables: ['user_overrides'],
  events: [USER_OVERRIDE_EVENTS],
  on: {
    'user_override:account_creation_set': last(
      ['user_id'],
      sql`
      insert into user_overrides (user_id, account_creation) select user_id, override from e
      on conflict (user_id) do update set account_creation = excluded.account_creation`,
    ),
    'user_override:max_accounts_set': last(
      ['user_id'],
      sql`
      insert into user_overrides (user_id, max_accounts) select user_id, max_accounts from e
      on conflict (user_id) do update set max_accounts = excluded.max_accounts`,
    ),
  },
});
