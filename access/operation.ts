import type { z } from 'zod';
import type { Act } from './act';
import type { Caller, RequestContext } from './caller';
import type { Admitted, Guards } from './guards';
import type { Services } from './services';

/** How the answer is wrapped on REST. Source: spec doc2 §2.1. */
export type Envelope =
  /** `{data, _links: {self}}` */
  | 'item'
  /** `run` returns a {@link Page}; sent as `{data, _links, _meta}`. */
  | 'collection'
  /** The output as it is, without `data`. */
  | 'bare'
  /** 204 without a body; GraphQL answers the output. */
  | 'empty';

export interface RestRoute {
  method: 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** `/v1/...` with `{name}` for path parameters; each is a member of the input. */
  path: string;
  /** Of success. Default 200 (204 for `empty`). */
  status: number;
  envelope: Envelope;
  /**
   * Members renamed or reshaped between the REST input and the operation's, where the spec gives the protocols
   * different shapes.
   */
  mapInput?: (input: Record<string, unknown>) => Record<string, unknown>;
  /**
   * Other names that members of the REST input go by (`type` for `event_type`). Both with different values are refused.
   */
  aliases?: Readonly<Record<string, string>>;
  /** Path of what was made, from the output: sent as `Location`. */
  location?: (output: never) => string;
  /** How REST shows one output, where the spec gives the protocols different shapes. Not for collections. */
  answer?: { schema: z.ZodType; of(output: unknown): unknown };
}

type RouteOptions = Partial<Pick<RestRoute, 'status' | 'envelope' | 'mapInput' | 'aliases' | 'location' | 'answer'>>;
const route =
  (method: RestRoute['method'], defaults: { status: number; envelope: Envelope }) =>
  (path: string, options: RouteOptions = {}): RestRoute => ({ method, path, ...defaults, ...options });

export const get = route('GET', { status: 200, envelope: 'item' });
export const list = route('GET', { status: 200, envelope: 'collection' });
export const post = route('POST', { status: 200, envelope: 'item' });
export const put = route('PUT', { status: 200, envelope: 'item' });
export const patch = route('PATCH', { status: 200, envelope: 'item' });
export const del = route('DELETE', { status: 204, envelope: 'empty' });

/** One page of a collection; `total` counts all that the filter matches. */
export interface Page<T> {
  items: T[];
  total: number;
  page: number;
  limit: number;
  /** True when counting or searching stopped at its budget: `total` is then a lower bound. */
  partial?: boolean;
}

export interface GraphqlShape {
  /**
   * `flat` (default): every input member is an argument. `input`: one argument `input` carries the members that are not
   * in `flat_arguments`. A name puts them under that argument (`filter`).
   */
  argument?: 'flat' | 'input' | 'filter';
  /** Members that stay arguments of their own beside `input` (an `id`, mostly). */
  flat_arguments?: readonly string[];
  /** GraphQL name of the paginated result type of a collection (`PaginatedEventResult`); default: a plain list. */
  page_type?: string;
  /**
   * GraphQL field to the snake_case member it shows, where that is not the camelCase of the member (`eventType` of
   * `type`).
   */
  renamed?: Readonly<Record<string, string>>;
}

/** What an operation is run for. */
export interface OperationRequest<Input, Who> {
  input: Input;
  caller: Who;
  context: RequestContext;
  /** Decides a command on behalf of the caller. */
  act: Act;
}

export interface OperationSpec<I extends z.ZodType, O extends z.ZodType> {
  /** The GraphQL field. */
  name: string;
  /** One line for OpenAPI and SDL, for people outside: no citation of the specification. */
  summary: string;
  /** Null only for what the spec gives GraphQL alone. */
  rest: RestRoute | null;
  graphql?: GraphqlShape;
  guard: Guards;
  /**
   * Where an account-scoped operation takes its account from: `caller` (default: what the credential or
   * `X-Lumio-Account` says) or `input` (it names the account itself, so a system key needs no header). Spec rulings,
   * "system key and accounts".
   */
  account?: 'caller' | 'input';
  /** Validation, OpenAPI schema and GraphQL arguments come from it. Always an object schema. */
  input: I;
  /**
   * Serialisation, OpenAPI response and GraphQL type come from it; for a collection the schema of one item. Name types
   * by `.meta({ id: 'UserApiKey' })`.
   */
  output: O;
  run(request: OperationRequest<z.output<I>, Caller>, services: Services): Promise<unknown>;
}

export interface Operation extends OperationSpec<z.ZodType, z.ZodType> {
  kind: 'command' | 'query';
}

/** The result type that `run` must return for this spec. */
type Result<O extends z.ZodType> = z.input<O> | Page<z.input<O>>;

type Declared<I extends z.ZodType, O extends z.ZodType, G extends Guards> = Omit<
  OperationSpec<I, O>,
  'run' | 'guard'
> & {
  guard: G;
  run(request: OperationRequest<z.output<I>, Admitted<G>>, services: Services): Promise<Result<O>>;
};

/** Declares an operation that changes something: a GraphQL mutation and its REST twin. */
export function command<I extends z.ZodType, O extends z.ZodType, const G extends Guards>(
  spec: Declared<I, O, G>,
): Operation {
  return { kind: 'command', ...spec } as unknown as Operation;
}

/** Declares an operation that only reads: a GraphQL query and its REST twin. */
export function query<I extends z.ZodType, O extends z.ZodType, const G extends Guards>(
  spec: Declared<I, O, G>,
): Operation {
  return { kind: 'query', ...spec } as unknown as Operation;
}
