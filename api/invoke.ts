import { actFor } from '../access/act';
import { newId } from '../access/event-ids';
import type { Caller, RequestContext } from '../access/caller';
import type { Operation } from '../access/operation';
import type { Services } from '../access/services';
import { declaredAnswer, refuse } from '../kernel/operation-errors';
import type { UploadedFile } from '../kernel/transfers';
import { ApiError } from '../kernel/errors';
import { authorise, gateOf, GUARD_MESSAGES, holdAccountGuard, type Entry } from './guard';
import { inputReader, type InputReader } from './input';

/** What a request asks of an operation, read only as far as it has come. */
export interface Asked {
  /** All members, converted and not yet validated. @throws ApiError when they cannot be read */
  input(): Record<string, unknown>;
  /** One member as it was sent; undefined where it cannot be told. */
  member(name: string): unknown;
}

/** Who an operation is run for, and with what. */
export interface Admission {
  readonly caller: Caller;
  readonly input: unknown;
}

/** An operation made ready at start: what both protocols call. */
export interface Prepared {
  readonly operation: Operation;
  readonly reader: InputReader;
  /** Guard, then validation, then whether the account exists. The order is that of spec rulings "order of checks". */
  admit(caller: Caller, asked: Asked): Promise<Admission> | Admission;
  /** The same where the body is read only once the guards have let the caller pass. */
  admitFirst(caller: Caller, asked: Asked, read: () => Promise<void>): Promise<Admission>;
  /** Scope of the request's `Idempotency-Key`; null is the caller. */
  idempotencyScope(admission: Admission, context: RequestContext): Promise<string | null>;
  run(admission: Admission, context: RequestContext, file?: UploadedFile): Promise<unknown>;
}

/** @throws ApiError from `admit` and `run` */
export function prepare(operation: Operation, services: Services): Prepared {
  const gate = gateOf(operation);
  holdAccountGuard(operation, gate);
  const reader = inputReader(operation);
  const named = gate.account;
  const { pages } = operation;
  holdRestAlone(operation);

  function validated({ caller, exists }: Entry, asked: Asked): Admission {
    const input = reader.validate(asked.input());
    if (!exists) throw new ApiError('NOT_FOUND', GUARD_MESSAGES.no_account);
    // Streams and channels are named by the id in lower case.
    if (named !== null) (input as Record<string, unknown>)[named] = caller.account_id;
    return { caller, input };
  }

  return {
    operation,
    reader,
    admit(caller, asked) {
      const entry = authorise(gate, caller, services, () => asked.member(named!));
      return entry instanceof Promise ? entry.then((known) => validated(known, asked)) : validated(entry, asked);
    },
    async admitFirst(caller, asked, read) {
      const entry = await authorise(gate, caller, services, () => asked.member(named!));
      await read();
      return validated(entry, asked);
    },
    idempotencyScope: async ({ input }, context) =>
      (await operation.idempotencyScope?.({ input, context }, services)) ?? null,
    async run({ caller, input }, context, file) {
      const request = { caller: gate.of_operators ? { ...caller, account_id: null } : caller, context };
      const page = pages?.asked(input as Record<string, unknown>);
      try {
        const act = actFor(request, services);
        const asked = { input, page, file, ...request, act, refuse, newId: (label: string) => newId(context, label) };
        const result = await operation.run(asked, services);
        return pages ? pages.shown(page as never, result as never) : result;
      } catch (error) {
        throw declaredAnswer(operation.errors, error);
      }
    },
  };
}

/** @throws Error when what is no JSON document is offered in GraphQL */
function holdRestAlone({ name, rest, graphql, sends, takes }: Operation): void {
  if ((sends || takes) && (graphql !== null || rest === null)) {
    throw new Error(`${name}: files and streams are REST's alone: say \`graphql: null\``);
  }
}
