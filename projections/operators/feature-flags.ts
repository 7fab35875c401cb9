import { FEATURE_FLAG_EVENTS } from '../../domain/operators/feature-flags';
import { sql } from '../../kernel/sql';
import { eventProjection, lastPer } from '../runtime/drive/handlers';

/** The operator's global switches; a flag that was never switched has no row. */
export const featureFlags = eventProjection({
  name: 'feature-flags',
  version: 1,
  tables: ['feature_flags'],
  rights: true,
  events: [FEATURE_FLAG_EVENTS],
  on: {
    'feature_flag:switched': lastPer(
      ['flag'],
      sql`
      insert into feature_flags (key, enabled, changed_at) select flag, enabled, switched_at from e
      on conflict (key) do update set enabled = excluded.enabled, changed_at = excluded.changed_at`,
    ),
  },
  // The switch concerns every account.
  revokes: { 'feature_flag:switched': () => ({}) },
});
