import type { Caller, RequestContext } from '../access/caller';
import { handle } from '../access/handle';
import type { Services } from '../access/services';
import { plan, planStream, SEEDED_PLANS, seedOf, slugReservations } from '../domain/plans';
import { Taken } from '../domain/reservations';

/**
 * Makes the plans that an installation begins with, each once in its life: one that an operator deleted stays away. It
 * bears being done by several processes at once.
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
      // An operator's own plan has the name: there is nothing to begin with.
      if (!(error instanceof Taken)) throw error;
    });
  }
}
