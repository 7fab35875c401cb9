import { account, accountStream, type AccountEvent } from '../../domain/accounts/accounts';
import { plan, type PlanCommand, planStream } from '../../domain/billing/plans';
import type { EventStore, StreamWrite } from '../../engines/event-store/port';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import { newEvents } from '../../app/write-path/event-ids';
import { handle } from '../../app/write-path/command-handler';
import type { Services } from '../../app/services';
import { aggregateCacheOf } from '../../app/write-path/aggregate-cache';

/**
 * Moves an account to a plan. Both plans count the account in the same append, so that a plan in use is never deleted.
 * @throws DomainError `ACCOUNT_NOT_FOUND`, `PLAN_NOT_FOUND`
 */
export async function changePlan(
  request: { caller: Caller; context: RequestContext },
  services: Pick<Services, 'events' | 'commit' | 'awaitShown'>,
  account_id: string,
  plan_id: string,
): Promise<void> {
  await handle(request, services, {
    decider: account,
    stream: accountStream(account_id),
    command: { type: 'account:change_plan', plan_id, now: new Date(request.context.now).toISOString() },
    additionalWrites: (decided) => planMoves(request.context, services.events, decided),
  });
}

/** Writes to the plans' streams that follow an account's change of plan. */
export async function planMoves(
  context: RequestContext,
  events: EventStore,
  decided: readonly AccountEvent[],
): Promise<StreamWrite[]> {
  const now = new Date(context.now).toISOString();
  const writes: StreamWrite[] = [];
  const move = async (plan_id: string, command: PlanCommand) => {
    const stream = planStream(plan_id);
    const { state, revision } = await aggregateCacheOf(events).load(plan, stream);
    const moved = plan.decide(state, command);
    if (moved.length === 0) return;
    writes.push({ stream, expected: revision, events: newEvents(context, `${stream}\n${command.type}`, moved) });
  };
  for (const event of decided) {
    if (event.type !== 'account:plan_changed') continue;
    await move(event.plan_id, { type: 'plan:join', now });
    await move(event.from_plan_id, { type: 'plan:leave', now });
  }
  return writes;
}
