import { FEATURE_FLAG_EVENTS } from '../domain/feature-flags';
import { sql } from '../kernel/sql';
import { handled, last } from './runtime/handlers';

/** The operator's global switches; a flag that nobody switched has no row. */
export const featureFlags = handled({
  name: 'feature-flags',
  version: 1,
  tables: ['feature_flags'],
  events: [FEATURE_FLAG_EVENTS],
  on: {
    'feature_flag:switched': last(
      ['flag'],
      sql`
      insert into feature_flags (key, enabled, changed_at) select flag, enabled, switched_at from e
      on conflict (key) do update set enabled = excluded.enabled, changed_at = excluded.changed_at`,
    ),
  },
  // It is every account's.
  revokes: { 'feature_flag:switched': () => ({}) },
});
