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

// An area finds every word that it declares an operation with in this one place.
export * from './guards';
export { badRequest, conflict, featureDisabled, forbidden, invalid, tooLarge } from '../kernel/operation-errors';
export { notFound, planLimit, rateLimited, unauthorized, type Refuse } from '../kernel/operation-errors';
export { cursor, cut, numbered, offset, rowsOf, whole } from '../kernel/pages';
export { del, get, patch, post, put } from '../kernel/routes';
export { attachment, download, ndjson, upload } from '../kernel/transfers';
