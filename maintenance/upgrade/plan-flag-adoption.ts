import type { Caller, RequestContext } from '../../access/authentication/caller';
import { handle } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import { plan, planStream } from '../../domain/billing/plans';
import { DomainError } from '../../kernel/errors';

/**
 * Enables the flags that a release added, once in each plan that a migration noted. Repeatable after an interruption
 * and safe in several processes at once. Returns the number of plans.
 */
export async function adoptPlanFlags(
  services: Pick<Services, 'db' | 'events' | 'commit' | 'awaitShown'>,
  request: { caller: Caller; context: RequestContext },
): Promise<number> {
  const rows = await services.db.query<{ plan_id: string; flags: string[] }>(
    'select plan_id, array_agg(flag order by flag) as flags from plan_flags_to_adopt group by plan_id order by plan_id',
  );
  const now = new Date(request.context.now).toISOString();
  for (const { plan_id, flags } of rows) {
    const features = Object.fromEntries(flags.map((flag) => [flag, true]));
    await handle(request, services, {
      decider: plan,
      stream: planStream(plan_id),
      command: { type: 'plan:set_features', features, now },
    }).catch((error: unknown) => {
      // The plan was deleted meanwhile.
      if (!(error instanceof DomainError && error.reason === 'PLAN_NOT_FOUND')) throw error;
    });
    await services.db.query('delete from plan_flags_to_adopt where plan_id = $1', [plan_id]);
  }
  return rows.length;
}
