import type { Caller, RequestContext } from '../../access/authentication/caller';
import { handle } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import { featureFlag, featureFlagStream } from '../../domain/operators/feature-flags';

/**
 * Appends events for the global feature flags of a release that stored them as rows, once: an appended flag leaves the
 * old table. Repeatable after an interruption and safe in several processes at once. Returns the number of flags.
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
