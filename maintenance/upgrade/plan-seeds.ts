import type { Caller, RequestContext } from '../../access/authentication/caller';
import { handle } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import { plan, planStream, SEEDED_PLANS, seedOf, slugReservations } from '../../domain/billing/plans';
import { Taken } from '../../domain/common/reservations';

/**
 * Creates the initial plans of an installation, each once: a plan that an operator deleted is not created again. Safe
 * in several processes at once.
 */
export async function seedPlans(
  services: Pick<Services, 'events' | 'commit' | 'awaitShown'>,
  request: { caller: Caller; context: RequestContext },
): Promise<void> {
  const now = new Date(request.context.now).toISOString();
  for (const seeded of SEEDED_PLANS) {
    await handle(request, services, {
      decider: plan,
      stream: planStream(seeded.plan_id),
      command: seedOf(seeded, now),
      reservations: slugReservations,
    }).catch((error: unknown) => {
      // An operator's own plan has this name already.
      if (!(error instanceof Taken)) throw error;
    });
  }
}
