import type { Caller, RequestContext } from '../../access/authentication/caller';
import type { Operation } from '../../app/operation';
import type { Services } from '../../app/services';
import { prepare } from '../../api/rest/invoke';

/** Runs an operation as both protocols do once its guards have let the caller pass and its input has been validated. */
export function ran(
  operation: Operation,
  input: unknown,
  caller: Partial<Caller>,
  services: Partial<Services>,
): Promise<unknown> {
  return prepare(operation, services as Services).run({ input, caller: caller as Caller }, {} as RequestContext);
}
