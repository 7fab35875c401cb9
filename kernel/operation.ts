import type { z } from 'zod';
import type { Admitted, Guards } from './guarded';
import type { OperationErrors, Refuse } from './operation-errors';
import type { Asked, Found, PageKind } from './pages';
import type { RestRoute } from './routes';

/** What operations are written for: who calls them, what a request brings, what they may use, and how they act. */
export interface House {
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
  /** Members that stay arguments of their own beside `input` (an `id`, mostly). */
  flat_arguments?: readonly string[];
  /**
   * GraphQL field to the snake_case member it shows, where that is not the camelCase of the member (`eventType` of
   * `type`).
   */
  renamed?: Readonly<Record<string, string>>;
}

/** What an operation is run for. */
export interface OperationRequest<H extends House, Input, Who, Errors extends OperationErrors, Pages> {
  /** Without the members that say which page is asked for. */
  input: Input;
  page: Asked<Pages>;
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
  /** One line for OpenAPI and SDL, for people outside: no citation of the specification. */
  summary: string;
  /** Null only for what the spec gives GraphQL alone. */
  rest: RestRoute | null;
  graphql?: GraphqlShape;
  /**
   * Calls a minute and caller, counted in a bucket of the operation's own beside the caller's; a credential without a
   * limit has none here either.
   */
  per_minute?: number;
  /** Validation, OpenAPI schema and GraphQL arguments come from it. Always an object schema. */
  input: I;
  /**
   * Serialisation, OpenAPI response and GraphQL type come from it; for a collection the schema of one item. Name types
   * by `.meta({ id: 'UserApiKey' })`.
   */
  output: O;
}

/** An operation, as the front door reads it. */
export interface Operation<H extends House = House> extends Shape<z.ZodType, z.ZodType> {
  kind: 'command' | 'query';
  guard: Guards<H['guard']>;
  /** What it answers beside its output, its guards' refusals and what the transport refuses. */
  errors: OperationErrors;
  pages?: PageKind;
  run(
    request: Omit<OperationRequest<H, unknown, H['caller'], OperationErrors, unknown>, 'page'> & { page: unknown },
    services: H['services'],
  ): Promise<unknown>;
}

type Declared<
  H extends House,
  I extends z.ZodType,
  O extends z.ZodType,
  G extends Guards<H['guard']>,
  E extends OperationErrors,
  P extends PageKind | undefined,
> = Shape<I, O> & {
  guard: G;
  /** Reasons that `run` refuses with, or that `decide` throws, and what the caller is told. */
  errors?: E;
  /** Where the output is one of many. */
  pages?: P;
  run(
    request: OperationRequest<H, z.output<I>, Admitted<H['caller'], G>, E, P>,
    services: H['services'],
  ): Promise<Found<P, z.input<O>>>;
};

type Declare<H extends House> = <
  I extends z.ZodType,
  O extends z.ZodType,
  const G extends Guards<H['guard']>,
  // eslint-disable-next-line @typescript-eslint/no-empty-object-type -- no errors declared: none can be refused with
  E extends OperationErrors = {},
  P extends PageKind | undefined = undefined,
>(
  spec: Declared<H, I, O, G, E, P>,
) => Operation<H>;

const declare =
  <H extends House>(kind: Operation['kind']): Declare<H> =>
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
export const operationsOf = <H extends House>() => ({
  /** Declares an operation that changes something: a GraphQL mutation and its REST twin. */
  command: declare<H>('command'),
  /** Declares an operation that only reads: a GraphQL query and its REST twin. */
  query: declare<H>('query'),
});
