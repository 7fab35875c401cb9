import { handle } from '../../access/handle';
import { changePlan } from '../../access/plan-changes';
import { load } from '../../access/states';
import { plan, PLAN_SLUGS, planStream } from '../../domain/plans';
import { reservation, reservationStream } from '../../domain/reservations';
import { seedPlans } from '../../maintenance/plan-seeds';
import { requireAccount } from './accounts';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './operator';

/** Puts an account on a plan. @throws AdminError */
export async function setPlan(services: AdminServices, account_id: string, slug: string): Promise<void> {
  await requireAccount(services, account_id);
  await changePlan(asOperator(OPERATOR), services, account_id, await planIdOf(services, slug));
}

/** Sets what a plan gives; returns all that it gives then. @throws AdminError, DomainError `UNKNOWN_FLAG` */
export async function setPlanFeatures(
  services: AdminServices,
  slug: string,
  features: Readonly<Record<string, boolean>>,
): Promise<string[]> {
  const { state } = await handle(asOperator(OPERATOR), services, {
    decider: plan,
    stream: planStream(await planIdOf(services, slug)),
    command: { type: 'plan:set_features', features, now: nowText() },
  });
  return [...state.features].flatMap(([flag, enabled]) => (enabled ? [flag] : [])).sort();
}

async function planIdOf(services: AdminServices, slug: string): Promise<string> {
  // On a database on which no process ever started the plans are not there yet.
  await seedPlans(services, asOperator(OPERATOR));
  const found = await load(services.events, reservation, reservationStream(PLAN_SLUGS, slug));
  if (!found?.state.owner) throw new AdminError(`there is no plan ${slug}`);
  return found.state.owner;
}
