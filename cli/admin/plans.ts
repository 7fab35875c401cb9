import { handle } from '../../app/write-path/command-handler';
import { changePlan } from '../../services/billing/plan-changes';
import { load } from '../../app/write-path/aggregate-cache';
import { plan, PLAN_SLUGS, planStream } from '../../domain/billing/plans';
import { reservation, reservationStream } from '../../domain/common/reservations';
import { seedPlans } from '../../maintenance/upgrade/plan-seeds';
import { requireAccount } from './accounts';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';

/** Moves an account to a plan. @throws AdminError */
export async function setPlan(services: AdminServices, account_id: string, slug: string): Promise<void> {
  await requireAccount(services, account_id);
  await changePlan(asOperator(OPERATOR), services, account_id, await planIdOf(services, slug));
}

/** Sets features of a plan; returns all enabled ones. @throws AdminError, DomainError `UNKNOWN_FLAG` */
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
  // The plans are missing in a database that no process has started on.
  await seedPlans(services, asOperator(OPERATOR));
  const found = await load(services.events, reservation, reservationStream(PLAN_SLUGS, slug));
  if (!found?.state.owner) throw new AdminError(`there is no plan ${slug}`);
  return found.state.owner;
}
