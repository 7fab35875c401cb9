import type { z } from 'zod';

/**
 * How one output is wrapped on REST; pages have shapes of their own (`kernel/operations/pages.ts`). Source: spec doc2
 * §2.1.
 */
export type Envelope =
  /** `{data, _links: {self}}` */
  | 'item'
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
  /** Members that are sent as headers, never in the address: the member and the name of its header. */
  headers?: Readonly<Record<string, string>>;
  /** Path of what was made, from the output: sent as `Location` and as its own link. */
  location?: (output: never) => string;
  /** How REST shows one output, where the spec gives the protocols different shapes. Not for pages. */
  answer?: { schema: z.ZodType; of(output: unknown): unknown };
  /**
   * The members of the input are parameters of another standard (RFC 6749 §3.1, §3.2): unknown and empty parameters are
   * ignored, and a known one that is sent twice is refused.
   */
  standard_parameters?: true;
  /**
   * A token endpoint of RFC 6749: takes forms beside JSON, nothing from the query, and HTTP Basic as the members
   * `client_id` and `client_secret`.
   */
  oauth?: true;
}

type RouteOptions = Partial<Omit<RestRoute, 'method' | 'path'>>;
const route =
  (method: RestRoute['method'], defaults: { status: number; envelope: Envelope }) =>
  (path: string, options: RouteOptions = {}): RestRoute => ({ method, path, ...defaults, ...options });

export const get = route('GET', { status: 200, envelope: 'item' });
export const post = route('POST', { status: 200, envelope: 'item' });
export const put = route('PUT', { status: 200, envelope: 'item' });
export const patch = route('PATCH', { status: 200, envelope: 'item' });
export const del = route('DELETE', { status: 204, envelope: 'empty' });
