import type { Caller, RequestContext } from '../../access/caller';
import type { Operation } from '../../access/operation';
import type { Services } from '../../access/services';
import { prepare } from '../../api/invoke';

/** Runs an operation as both protocols do once its guards have let the caller pass and its input has been validated. */
export function ran(
  operation: Operation,
  input: unknown,
  caller: Partial<Caller>,
  services: Partial<Services>,
): Promise<unknown> {
  return prepare(operation, services as Services).run({ input, caller: caller as Caller }, {} as RequestContext);
}
