import type { Caller, RequestContext } from '../access/caller';
import { handle } from '../access/handle';
import type { Services } from '../access/services';
import { featureFlag, featureFlagStream } from '../domain/feature-flags';

/**
 * Appends the global feature flags that were rows before they were events, once: what is appended leaves the table that
 * kept it. It bears being cut off, and being done by several processes at once. Returns how many there were.
 */
export async function adoptFeatureFlags(
  services: Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown'>,
  request: { caller: Caller; context: RequestContext },
): Promise<number> {
  const rows = await services.db.query<{ key: string; enabled: boolean; changed_at: string }>(
    'select key, enabled, changed_at from feature_flags_before_events order by key',
  );
  for (const { key, enabled, changed_at } of rows) {
    await handle(request, services, {
      decider: featureFlag,
      stream: featureFlagStream(key),
      command: { type: 'feature_flag:adopt', flag: key, enabled, now: new Date(changed_at).toISOString() },
    });
    await services.db.query('delete from feature_flags_before_events where key = $1', [key]);
  }
  return rows.length;
}
