import type * as kernel from '../../kernel/operations/act';
import type { ReservationCommand } from '../../domain/common/reservations';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import { handle } from './command-handler';
import type { Services } from '../services';

export type Act = kernel.Act<ReservationCommand>;

/**
 * Wraps an {@link Act} to refuse a second command on one stream without a `step` of its own: under an Idempotency-Key
 * the store would treat it as a repetition of the first. A failed command may be retried.
 * @throws Error for such a command, which is a programming error
 */
export function oncePerStep(act: Act, who: string): Act {
  const asked = new Set<string>();
  return async (decider, stream, command, options) => {
    const label = JSON.stringify([stream, options?.step]);
    if (asked.has(label)) throw new Error(`${who}: two commands on ${stream} need a step each`);
    asked.add(label);
    try {
      return await act(decider, stream, command, options);
    } catch (error) {
      asked.delete(label);
      throw error;
    }
  };
}

/** {@link Act} for one request. */
export const actFor =
  (
    request: { caller: Caller; context: RequestContext },
    services: Pick<Services, 'events' | 'commit' | 'awaitShown'>,
  ): Act =>
  (decider, stream, command, options) => {
    const now = new Date(request.context.now).toISOString();
    return handle(request, services, { ...options, decider, stream, command: { now, ...command } as never });
  };
