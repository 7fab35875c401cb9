import { actFor } from '../access/act';
import type { Caller, RequestContext } from '../access/caller';
import type { Operation } from '../access/operation';
import type { Services } from '../access/services';
import { declaredAnswer, refuse } from '../kernel/operation-errors';
import { authorise, gateOf } from './guard';
import { inputReader, type InputReader } from './input';

/** An operation made ready at start: what both protocols call. */
export interface Prepared {
  readonly operation: Operation;
  readonly reader: InputReader;
  /** Guard, then validation; the validated input. The order is that of spec rulings "order of checks". */
  admit(caller: Caller, input: () => Record<string, unknown>): unknown;
  run(input: unknown, caller: Caller, context: RequestContext): Promise<unknown>;
}

/** @throws ApiError from `admit` and `run` */
export function prepare(operation: Operation, services: Services): Prepared {
  const gate = gateOf(operation);
  const reader = inputReader(operation);
  return {
    operation,
    reader,
    admit(caller, input) {
      const pending = authorise(gate, caller, services.features);
      return pending ? pending.then(() => reader.validate(input())) : reader.validate(input());
    },
    async run(input, caller, context) {
      const request = { caller, context };
      try {
        return await operation.run({ input, ...request, act: actFor(request, services), refuse }, services);
      } catch (error) {
        throw declaredAnswer(operation.errors, error);
      }
    },
  };
}
