import { account, accountStream, type AccountEvent } from '../domain/accounts';
import { plan, type PlanCommand, planStream } from '../domain/plans';
import type { EventStore, StreamWrite } from '../engines/event-store/port';
import type { Caller, RequestContext } from './caller';
import { newEvents } from './event-ids';
import { handle } from './handle';
import type { Services } from './services';
import { statesOf } from './states';

/**
 * Puts an account on a plan. Both plans count it in the same append, so that a plan is never deleted under an account.
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
    also: (decided) => planMoves(request.context, services.events, decided),
  });
}

/** What an account's change of plan adds to the plans' counts. */
export async function planMoves(
  context: RequestContext,
  events: EventStore,
  decided: readonly AccountEvent[],
): Promise<StreamWrite[]> {
  const now = new Date(context.now).toISOString();
  const writes: StreamWrite[] = [];
  const move = async (plan_id: string, command: PlanCommand) => {
    const stream = planStream(plan_id);
    const { state, revision } = await statesOf(events).load(plan, stream);
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
