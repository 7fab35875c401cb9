import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Operation, Page, RestRoute } from '../access/operation';
import type { Idempotency, StoredAnswer } from './idempotency';
import type { Prepared } from './invoke';
import { ApiError } from '../domain/errors';
import { sendContextHeaders, stateOf } from './request-state';
import { compileSerialiser } from './serialise';

export const JSON_TYPE = 'application/json; charset=utf-8';

export interface RestOptions {
  /** Origin that `_links` start with; absent: the request's own. */
  public_url: string | undefined;
  idempotency: Idempotency;
}

/** `/v1/api-keys/{id}` as Fastify spells it. */
export const fastifyPath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1');

/** Registers the REST twin of one operation. */
export function registerRest(app: FastifyInstance, prepared: Prepared, options: RestOptions): void {
  const rest = prepared.operation.rest;
  if (!rest) return;
  const answer = answerWriter(prepared.operation, rest, options.public_url);
  const unsafe = rest.method !== 'GET';
  app.route({
    method: rest.method,
    url: fastifyPath(rest.path),
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      const admitted = prepared.admit(caller, () => inputOf(prepared, request, unsafe));
      const input = admitted instanceof Promise ? await admitted : admitted;
      const key = unsafe ? request.headers['idempotency-key'] : undefined;
      const run = async (): Promise<StoredAnswer> => {
        const result = await prepared.run(input, caller, context);
        return { status: rest.status, headers: context.response_headers ?? null, body: answer(request, result) };
      };
      if (key === undefined) {
        const result = await prepared.run(input, caller, context);
        sendContextHeaders(reply, context);
        return send(reply, rest.status, answer(request, result));
      }
      const stored = await options.idempotency.once(
        { request, route: `${rest.method} ${rest.path}`, key, caller, context },
        run,
      );
      if (stored.headers) void reply.headers(stored.headers);
      return send(reply, stored.status, stored.body);
    },
  });
}

function send(reply: FastifyReply, status: number, body: string | null): FastifyReply {
  void reply.code(status);
  return body === null ? reply.send() : reply.header('content-type', JSON_TYPE).send(body);
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});

function inputOf(prepared: Prepared, request: FastifyRequest, unsafe: boolean): Record<string, unknown> {
  const texts: Record<string, unknown> = {};
  const query = request.query as Record<string, unknown>;
  refuseOddUrl(request.url);
  for (const name in query) {
    // Setting it would not make a member but change the object's prototype.
    if (name === '__proto__') throw new ApiError('VALIDATION_ERROR', '__proto__: is not a member of this request');
    // A browser source's credential, not a member of any input.
    if (name !== 'token') texts[name] = query[name];
  }
  Object.assign(texts, request.params);
  const body = unsafe ? (request.body ?? NOTHING) : NOTHING;
  if (typeof body !== 'object' || Array.isArray(body)) throw notAnObject();
  return prepared.reader.merge(texts, body as Record<string, unknown>);
}

type Writer = (request: FastifyRequest, result: unknown) => string | null;

function answerWriter(operation: Operation, rest: RestRoute, publicUrl: string | undefined): Writer {
  if (rest.envelope === 'empty') return () => null;
  const serialise = compileSerialiser(rest.answer?.schema ?? operation.output, rest.envelope);
  const shown = (output: unknown) => (rest.answer ? rest.answer.of(output) : output);
  const origin = publicUrl?.replace(/\/+$/, '');
  const self = (request: FastifyRequest) =>
    (origin ?? `${request.protocol}://${request.host}`) + withoutToken(request.url);
  if (rest.envelope === 'item')
    return (request, output) => serialise({ data: shown(output), _links: { self: self(request) } });
  if (rest.envelope === 'collection')
    return (request, page) => serialise(collection(self(request), page as Page<unknown>));
  return (_request, output) => serialise(shown(output));
}

/** `prev` and `next` are left out at the ends. Source: spec doc2 §2.1. */
function collection(self: string, page: Page<unknown>): unknown {
  const pages = Math.max(1, Math.ceil(page.total / page.limit));
  const links: Record<string, string> = { self };
  const at = pageLinks(self);
  links.first = at(1);
  if (page.page > 1) links.prev = at(Math.min(page.page - 1, pages));
  if (page.page < pages) links.next = at(page.page + 1);
  links.last = at(pages);
  const meta: Record<string, unknown> = { total: page.total, page: page.page, limit: page.limit, pages };
  if (page.partial !== undefined) meta.partial = page.partial;
  return { data: page.items, _links: links, _meta: meta };
}

function pageLinks(self: string): (page: number) => string {
  const mark = self.indexOf('?');
  const path = mark === -1 ? self : self.slice(0, mark);
  const rest =
    mark === -1
      ? []
      : self
          .slice(mark + 1)
          .split('&')
          .filter((pair) => pair !== '' && !/^page(=|$)/.test(pair));
  const start = `${path}?${rest.length > 0 ? `${rest.join('&')}&` : ''}page=`;
  return (page) => start + page;
}

/** A credential in the query must not come back in a link. */
function withoutToken(url: string): string {
  if (!url.includes('token=')) return url;
  const mark = url.indexOf('?');
  const kept = url
    .slice(mark + 1)
    .split('&')
    .filter((pair) => !pair.startsWith('token='));
  return url.slice(0, mark) + (kept.length > 0 ? `?${kept.join('&')}` : '');
}

/** Escapes that are no UTF-8 would otherwise be searched for as they stand. */
function refuseOddUrl(url: string): void {
  if (!url.includes('%')) return;
  if (url.includes('%00')) throw new ApiError('VALIDATION_ERROR', 'NUL characters are not allowed');
  try {
    decodeURIComponent(url);
  } catch {
    throw new ApiError('BAD_REQUEST', 'The URL is malformed');
  }
}

function notAnObject(): ApiError {
  return new ApiError('BAD_REQUEST', 'The request body must be a JSON object');
}
