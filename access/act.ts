import type * as kernel from '../kernel/act';
import type { ReservationCommand } from '../domain/reservations';
import type { Caller, RequestContext } from './caller';
import { handle } from './handle';
import type { Services } from './services';

export type Act = kernel.Act<ReservationCommand>;

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
