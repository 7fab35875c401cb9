import { actFor, oncePerStep } from '../../app/write-path/act';
import type { Bucket } from '../../access/limits/rate-buckets';
import { newId } from '../../app/write-path/event-ids';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import type { Operation } from '../../app/operation';
import type { Services } from '../../app/services';
import { declaredAnswer, refuse } from '../../kernel/operations/errors';
import type { UploadedFile } from '../../kernel/operations/transfers';
import { ApiError } from '../../kernel/errors';
import { MAX_PAGE_BYTES } from '../../kernel/operations/pages';
import { authorise, gateOf, GUARD_MESSAGES, holdAccountGuard, type Entry } from './guard';
import { inputReader, type InputReader } from './input';
import { rowBytes } from '../http/answers/row-bytes';

/** Input of a request, parsed only on demand. */
export interface Asked {
  /** All members, converted and not yet validated. @throws ApiError when they cannot be read */
  input(): Record<string, unknown>;
  /** A member as it was sent; undefined when the input cannot be read. */
  member(name: string): unknown;
}

/** Admitted caller of an operation, with the validated input. */
export interface Admission {
  readonly caller: Caller;
  readonly input: unknown;
  /** Where a signed link admitted the caller. */
  readonly link_bucket?: Bucket | undefined;
}

/** An operation prepared at start, called by both protocols. */
export interface Prepared {
  readonly operation: Operation;
  readonly reader: InputReader;
  /** Checks the guards, validates, then checks that the account exists. Order: spec rulings "order of checks". */
  admit(caller: Caller, asked: Asked): Promise<Admission> | Admission;
  /** Admits as `admit`, but reads the body between guards and validation. */
  admitFirst(caller: Caller, asked: Asked, read: () => Promise<void>): Promise<Admission>;
  /** Scope of the request's `Idempotency-Key`; null is the caller. */
  idempotencyScope(admission: Admission, context: RequestContext): Promise<string | null>;
  run(admission: Admission, context: RequestContext, file?: UploadedFile): Promise<unknown>;
}

/**
 * @param checked true when a second command on one stream without a `step` must fail; not in production
 * @throws ApiError from `admit` and `run`
 */
export function prepare(operation: Operation, services: Services, checked = false): Prepared {
  const gate = gateOf(operation);
  holdAccountGuard(operation, gate);
  const reader = inputReader(operation);
  const named = gate.account;
  const { pages } = operation;
  const bytes_of = rowBytes(operation.output);
  holdRestAlone(operation);

  function validated({ caller, exists, link_bucket }: Entry, asked: Asked): Admission {
    const input = reader.validate(asked.input());
    if (!exists) throw new ApiError('NOT_FOUND', GUARD_MESSAGES.no_account);
    // Streams and channels use the id in lower case.
    if (named !== null) (input as Record<string, unknown>)[named] = caller.account_id;
    return link_bucket === undefined ? { caller, input } : { caller, input, link_bucket };
  }

  return {
    operation,
    reader,
    admit(caller, asked) {
      const entry = authorise(gate, caller, services, (member) => asked.member(member));
      return entry instanceof Promise ? entry.then((known) => validated(known, asked)) : validated(entry, asked);
    },
    async admitFirst(caller, asked, read) {
      const entry = await authorise(gate, caller, services, (member) => asked.member(member));
      await read();
      return validated(entry, asked);
    },
    idempotencyScope: async ({ input }, context) =>
      (await operation.idempotencyScope?.({ input, context }, services)) ?? null,
    async run({ caller, input }, context, file) {
      const request = { caller: gate.of_operators ? { ...caller, account_id: null } : caller, context };
      const page = pages?.asked(input as Record<string, unknown>, context.page_bytes ?? MAX_PAGE_BYTES);
      try {
        const plain = actFor(request, services);
        const act = checked ? oncePerStep(plain, operation.name) : plain;
        const asked = { input, page, file, ...request, act, refuse, newId: (label: string) => newId(context, label) };
        const result = await operation.run(asked, services);
        return pages ? pages.shown(page as never, result as never, bytes_of) : result;
      } catch (error) {
        throw declaredAnswer(operation.errors, error);
      }
    },
  };
}

/** @throws Error when an operation with files or streams is offered in GraphQL */
function holdRestAlone({ name, rest, graphql, sends, takes }: Operation): void {
  if ((sends || takes) && (graphql !== null || rest === null)) {
    throw new Error(`${name}: files and streams are REST's alone: say \`graphql: null\``);
  }
}
