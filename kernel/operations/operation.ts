import type { z } from 'zod';
import type { Admitted, Guards } from './guarded';
import type { OperationErrors, Refuse } from './errors';
import type { Asked, ReadPage, PageKind } from './pages';
import type { RestRoute } from './routes';
import type { Attachment, Download, Sends, Upload, UploadedFile } from './transfers';

/** Types that operations are written for: callers, requests, services, and the way to act. */
export interface OperationTypes {
  caller: object;
  context: object;
  services: object;
  guard: object;
  act: unknown;
}

export interface GraphqlShape {
  /**
   * `flat` (default): every input member is an argument. `input`: one argument `input` carries the members that are not
   * in `flat_arguments`. A name puts them under that argument (`filter`).
   */
  argument?: 'flat' | 'input' | 'filter';
  /** Members that stay arguments of their own next to `input` (an `id`, mostly). */
  flat_arguments?: readonly string[];
  /**
   * GraphQL field to the snake_case member it shows, where that is not the camelCase of the member (`eventType` of
   * `type`).
   */
  renamed?: Readonly<Record<string, string>>;
}

/** Request that an operation runs for. */
export interface OperationRequest<H extends OperationTypes, Input, Who, Errors extends OperationErrors, Pages, File> {
  /** Without the members that choose the page. */
  input: Input;
  page: Asked<Pages>;
  /** The uploaded file, where the operation takes one. */
  file: File;
  caller: Who;
  context: H['context'];
  /** Decides a command on behalf of the caller. */
  act: H['act'];
  /** An id for something new; under one `Idempotency-Key` and label always the same. */
  newId(label: string): string;
  /** `throw refuse('KEY_NOT_FOUND')` answers an error that the operation declares. */
  refuse: Refuse<Errors>;
}

interface Shape<I extends z.ZodType, O extends z.ZodType> {
  /** The GraphQL field. */
  name: string;
  /** A line for OpenAPI and SDL, for people outside: no citation of the specification. */
  summary: string;
  /** Null only for what the spec gives GraphQL alone. */
  rest: RestRoute | null;
  /** Null for what is no JSON document: such operations are REST's alone. */
  graphql?: GraphqlShape | null;
  /**
   * Calls a minute and caller, counted in a bucket of the operation's own in addition to the caller's; a credential
   * without a limit has no limit here either.
   */
  per_minute?: number;
  /**
   * Seconds for which caches may hold an answer on REST, which then has an ETag; refusals are never held. For what is
   * the same for all callers.
   */
  cache_seconds?: number;
  /** Validation, OpenAPI schema and GraphQL arguments come from it. Always an object schema. */
  input: I;
  /**
   * Serialisation, OpenAPI response and GraphQL type come from it; for a collection the schema of one item. Name types
   * by `.meta({ id: 'UserApiKey' })`.
   */
  output: O;
}

/** An operation, as the front door reads it. */
export interface Operation<H extends OperationTypes = OperationTypes> extends Shape<z.ZodType, z.ZodType> {
  kind: 'command' | 'query';
  guard: Guards<H['guard']>;
  /** Its answers besides its output, the refusals of its guards and those of the transport. */
  errors: OperationErrors;
  pages?: PageKind;
  sends?: Sends;
  takes?: Upload;
  idempotencyScope?(
    request: { input: unknown; context: H['context'] },
    services: H['services'],
  ): Promise<string | null>;
  run(
    request: Omit<OperationRequest<H, unknown, H['caller'], OperationErrors, unknown, unknown>, 'page'> & {
      page: unknown;
    },
    services: H['services'],
  ): Promise<unknown>;
}

/** Return type of `run` for this output. */
type Result<P, S, T> = S extends { kind: 'ndjson' }
  ? AsyncIterable<T>
  : S extends { kind: 'download' }
    ? Download
    : S extends { kind: 'attachment' }
      ? Attachment
      : ReadPage<P, T>;

type Declared<
  H extends OperationTypes,
  I extends z.ZodType,
  O extends z.ZodType,
  G extends Guards<H['guard']>,
  E extends OperationErrors,
  P extends PageKind | undefined,
  S extends Sends | undefined,
  U extends Upload | undefined,
> = Shape<I, O> & {
  guard: G;
  /** Reasons that `run` refuses with, or that `decide` throws, with the answers to the caller. */
  errors?: E;
  /** Where the output is one of many. */
  pages?: P;
  /** Where the answer is no JSON document. */
  sends?: S;
  /** Where a file comes in. */
  takes?: U;
  /**
   * Scope of an `Idempotency-Key` where the input proves who calls: a repetition may come from another address or with
   * another credential. Null, like leaving it out: the caller.
   */
  idempotencyScope?(
    request: { input: z.output<I>; context: H['context'] },
    services: H['services'],
  ): Promise<string | null>;
  run(
    request: OperationRequest<
      H,
      z.output<I>,
      Admitted<H['caller'], G>,
      E,
      P,
      U extends Upload ? UploadedFile : undefined
    >,
    services: H['services'],
  ): Promise<Result<P, S, z.input<O>>>;
};

type Declare<H extends OperationTypes> = <
  I extends z.ZodType,
  O extends z.ZodType,
  const G extends Guards<H['guard']>,
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- no errors declared: none can be refused with
  E extends OperationErrors = {},
  P extends PageKind | undefined = undefined,
  S extends Sends | undefined = undefined,
  U extends Upload | undefined = undefined,
>(
  spec: Declared<H, I, O, G, E, P, S, U>,
) => Operation<H>;

const declare =
  <H extends OperationTypes>(kind: Operation['kind']): Declare<H> =>
  ({ pages, ...spec }) =>
    ({
      kind,
      errors: {},
      ...spec,
      ...(pages && { pages, input: withMembers(spec.input, pages.members) }),
    }) as unknown as Operation<H>;

/** An object schema with further members, under the name that it has. */
function withMembers(input: z.ZodType, members: PageKind['members']): z.ZodType {
  return (input as z.ZodObject).extend(members).meta({ ...input.meta() });
}

/** The two words that operations of one house are declared with. */
export const operationsOf = <H extends OperationTypes>() => ({
  /** Declares an operation that changes something: a GraphQL mutation and its REST twin. */
  command: declare<H>('command'),
  /** Declares an operation that only reads: a GraphQL query and its REST twin. */
  query: declare<H>('query'),
});
