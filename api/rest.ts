import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, RequestContext } from '../access/caller';
import type { Operation } from '../access/operation';
import type { Services } from '../access/services';
import type { RestRoute } from '../kernel/routes';
import type { Idempotency, StoredAnswer } from './idempotency';
import type { Asked, Prepared } from './invoke';
import { ApiError } from '../kernel/errors';
import { AtOnce } from './at-once';
import { envelopeOf } from './envelopes';
import { ownPath } from './links';
import { RATE_LIMIT_MESSAGE, type Limiter } from './rate-limit';
import { CLIENT_CHALLENGE, withClientCredentials } from './oauth-bodies';
import { senderOf, type Sender } from './sending';
import { readUpload, type Uploaded } from './uploads';
import { sendContextHeaders, stateOf } from './request-state';
import { compileSerialiser } from './serialise';

export const JSON_TYPE = 'application/json; charset=utf-8';

export interface RestOptions {
  /** Where links begin. */
  origin(request: FastifyRequest): string;
  idempotency: Idempotency;
  limiter: Limiter;
  services: Pick<Services, 'blobs' | 'db'>;
}

/** Seconds after which somebody who reads as many streams as may be can try again. */
const RETRY_STREAM = 5;

/** A route whose answer is no JSON document; it only reads, so that nothing of it is kept for a repetition. */
function registerSending(
  app: FastifyInstance,
  prepared: Prepared,
  rest: RestRoute,
  sender: Sender,
  { limiter }: RestOptions,
): void {
  const { name, per_minute, kind, sends } = prepared.operation;
  if (kind === 'command') throw new Error(`${name}: only queries send files and streams`);
  const streams = new AtOnce();
  const stream = (caller: Caller, reply: FastifyReply, stalled_ms: number) => {
    const end = streams.begin(caller, name);
    if (end === null)
      throw new ApiError('RATE_LIMIT_EXCEEDED', RATE_LIMIT_MESSAGE, { retry_after_seconds: RETRY_STREAM });
    // The event has passed where the caller is gone already.
    if (reply.raw.closed) end();
    else reply.raw.once('close', end);
    reply.raw.setTimeout(stalled_ms, () => reply.raw.destroy());
  };
  app.route({
    method: rest.method,
    url: fastifyPath(rest.path),
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      if (per_minute !== undefined) await limiter.countCalls(caller, name, per_minute, 1, reply);
      const admission = await prepared.admit(caller, askedBy(prepared, request, false));
      if (sends?.kind === 'ndjson') stream(admission.caller, reply, sends.stalled_ms);
      const result = await prepared.run(admission, context);
      sendContextHeaders(reply, context);
      return sender(request, reply.code(rest.status), result);
    },
  });
}

/** `/v1/api-keys/{id}` as Fastify spells it. */
export const fastifyPath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1');

/** Registers the REST twin of one operation. */
export function registerRest(app: FastifyInstance, prepared: Prepared, options: RestOptions): void {
  const rest = prepared.operation.rest;
  if (!rest) return;
  const { sends, output } = prepared.operation;
  if (sends) {
    registerSending(app, prepared, rest, senderOf(sends, output), options);
    return;
  }
  const answer = answerWriter(prepared.operation, rest, options.origin);
  const headersOf = (request: FastifyRequest, context: RequestContext, result: unknown) =>
    rest.location
      ? { ...context.response_headers, location: options.origin(request) + rest.location(result as never) }
      : context.response_headers;
  const unsafe = rest.method !== 'GET';
  const { name, per_minute, takes } = prepared.operation;
  app.route({
    method: rest.method,
    url: fastifyPath(rest.path),
    config: rest.oauth ? { challenge: CLIENT_CHALLENGE } : {},
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      if (per_minute !== undefined) await options.limiter.countCalls(caller, name, per_minute, 1, reply);
      const asked = askedBy(prepared, request, unsafe);
      let uploaded: Uploaded | undefined;
      const read = async () => {
        uploaded = await readUpload(request, takes!, options.services);
        request.body = { ...uploaded.fields, [takes!.file]: uploaded.file.sha256 };
      };
      const drop = async (error: unknown): Promise<never> => {
        await uploaded?.drop();
        throw error;
      };
      const admitted = takes ? prepared.admitFirst(caller, asked, read).catch(drop) : prepared.admit(caller, asked);
      const admission = admitted instanceof Promise ? await admitted : admitted;
      const key = unsafe ? request.headers['idempotency-key'] : undefined;
      let kept = false;
      const run = async (): Promise<StoredAnswer> => {
        const result = await prepared.run(admission, context, uploaded?.file);
        kept = true;
        return {
          status: rest.status,
          headers: headersOf(request, context, result) ?? null,
          body: answer(request, result),
        };
      };
      if (key === undefined) {
        const result = takes
          ? await prepared.run(admission, context, uploaded?.file).catch(drop)
          : await prepared.run(admission, context);
        await uploaded?.keep();
        const headers = headersOf(request, context, result);
        if (headers) void reply.headers(headers);
        return send(reply, rest.status, answer(request, result));
      }
      const scope = await prepared.idempotencyScope(admission, context);
      const call = { request, route: `${rest.method} ${rest.path}`, key, caller: admission.caller, scope, context };
      const stored = await options.idempotency.answerOnce(call, run).finally(async () => {
        // Refused, or answered by what the first call did with its own file.
        await (kept ? uploaded?.keep() : uploaded?.drop());
      });
      if (stored.headers) void reply.headers(stored.headers);
      return send(reply, stored.status, stored.body);
    },
  });
}

function send(reply: FastifyReply, status: number, body: string | null): FastifyReply {
  void reply.code(status);
  return body === null ? reply.send() : reply.header('content-type', JSON_TYPE).send(body);
}

function askedBy(prepared: Prepared, request: FastifyRequest, unsafe: boolean): Asked {
  return {
    input: () => inputOf(prepared, request, unsafe),
    member(name) {
      const parameters = request.params as Record<string, unknown>;
      if (Object.hasOwn(parameters, name)) return parameters[name];
      try {
        return inputOf(prepared, request, unsafe)[name];
      } catch {
        return undefined;
      }
    },
  };
}

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});

function inputOf(prepared: Prepared, request: FastifyRequest, unsafe: boolean): Record<string, unknown> {
  const texts: Record<string, unknown> = {};
  const query = request.query as Record<string, unknown>;
  refuseOddUrl(request.url);
  const { takes, rest } = prepared.operation;
  // What stands in a URL is written down by every proxy on the way, and secrets are no business of theirs.
  for (const name in rest?.oauth ? NOTHING : query) {
    // Setting it would not make a member but change the object's prototype.
    if (name === '__proto__') throw new ApiError('VALIDATION_ERROR', '__proto__: is not a member of this request');
    // A browser source's credential, not a member of any input.
    if (name !== 'token') texts[name] = query[name];
  }
  Object.assign(texts, request.params);
  if (takes) {
    // Fields of a multipart body are texts, as those of a query are.
    const { [takes.file]: _file, ...fields } = (request.body ?? {}) as Record<string, unknown>;
    return prepared.reader.merge({ ...texts, ...fields, ...(request.params as object) }, {});
  }
  const body = unsafe ? (request.body ?? NOTHING) : NOTHING;
  if (typeof body !== 'object' || Array.isArray(body)) throw notAnObject();
  const members = body as Record<string, unknown>;
  return prepared.reader.merge(
    texts,
    rest?.oauth ? withClientCredentials(request.headers.authorization, members) : members,
  );
}

type Writer = (request: FastifyRequest, result: unknown) => string | null;

function answerWriter(operation: Operation, rest: RestRoute, origin: RestOptions['origin']): Writer {
  const envelope = envelopeOf(operation);
  if (envelope === null) return () => null;
  const serialise = compileSerialiser(rest.answer?.schema ?? operation.output, envelope);
  const shown = (output: unknown) => (rest.answer ? rest.answer.of(output) : output);
  const pathOf = (request: FastifyRequest, output: unknown) => rest.location?.(output as never) ?? ownPath(request.url);
  return (request, output) => serialise(envelope.body(shown(output), origin(request) + pathOf(request, output)));
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
