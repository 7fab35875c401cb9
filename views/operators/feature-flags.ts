import { z } from 'zod';
import { FLAG_CATEGORIES, FLAG_REASONS, KNOWN_FLAGS } from '../../domain/operators/feature-flags';
import type { Queryable } from '../../engines/postgres/port';

/** A flag as operators see it. Source: spec extra-facts §26. */
export const FeatureFlag = z
  .object({
    id: z.uuid().describe('The same in every installation'),
    key: z.string(),
    label: z.string(),
    category: z.enum(FLAG_CATEGORIES).meta({ id: 'FeatureFlagCategory' }),
    enabled: z.boolean().describe('The global switch: off is off for everybody'),
    changed_at: z.string().meta({ format: 'date-time' }).nullable().describe('Null: never switched'),
  })
  .meta({ id: 'FeatureFlag' });
export type FeatureFlag = z.output<typeof FeatureFlag>;

/** Source: spec doc2 §2.2; GraphQL shows the reasons in upper case. */
export const FeatureStatus = z
  .object({
    key: z.string(),
    enabled: z.boolean().describe('For this caller'),
    reason: z.enum(FLAG_REASONS).meta({ id: 'FeatureStatusReason' }).nullable().describe('Null when enabled'),
  })
  .meta({ id: 'FeatureStatusGql' });

/** All flags that the code reads, by category. */
export async function adminFeatureFlags(db: Queryable): Promise<FeatureFlag[]> {
  const rows = await db.query<{ key: string; enabled: boolean; changed_at: string }>(
    'select key, enabled, changed_at from feature_flags',
    [],
    'feature-flags',
  );
  const switched = new Map(rows.map((row) => [row.key, row]));
  return KNOWN_FLAGS.map(({ id, key, label, category }) => {
    const row = switched.get(key);
    return { id, key, label, category, enabled: row?.enabled ?? true, changed_at: row?.changed_at ?? null };
  });
}
