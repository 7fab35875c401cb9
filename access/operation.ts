import * as kernel from '../kernel/operation';
import type { Act } from './act';
import type { Caller, RequestContext } from './caller';
import type { Guard } from './guards';
import type { Services } from './services';

/** Operations of this house, and who calls them. */
export interface House {
  caller: Caller;
  context: RequestContext;
  services: Services;
  guard: Guard;
  act: Act;
}
export type Operation = kernel.Operation<House>;

export const { command, query } = kernel.operationsOf<House>();
