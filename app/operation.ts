import * as kernel from '../kernel/operations/operation';
import type { Act } from './write-path/act';
import type { Caller, RequestContext } from '../access/authentication/caller';
import type { Guard } from '../access/authorization/guards';
import type { Services } from './services';

/** Types that this service's operations are declared with. */
export interface AppOperationTypes {
  caller: Caller;
  context: RequestContext;
  services: Services;
  guard: Guard;
  act: Act;
}
export type Operation = kernel.Operation<AppOperationTypes>;

export const { command, query } = kernel.operationsOf<AppOperationTypes>();

// Re-exports everything that an area declares an operation with.
export * from '../access/authorization/guards';
export { badRequest, conflict, featureDisabled, forbidden, invalid, tooLarge } from '../kernel/operations/errors';
export { notFound, planLimit, rateLimited, unauthorized, type Refuse } from '../kernel/operations/errors';
export { cursor, cut, numbered, offset, rowsOf, timeline, whole } from '../kernel/operations/pages';
export { del, get, patch, post, put } from '../kernel/operations/routes';
export { attachment, download, ndjson, upload } from '../kernel/operations/transfers';
