import { hash } from 'node:crypto';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import type { Caller, RequestContext } from '../../access/authentication/caller';
import type { Operation } from '../../app/operation';
import type { Services } from '../../app/services';
import type { RestRoute } from '../../kernel/operations/routes';
import type { Idempotency, StoredAnswer } from './idempotency';
import type { Asked, Prepared } from './invoke';
import { ApiError } from '../../kernel/errors';
import { RawJsonTooLong } from '../../lib/json/raw-json';
import { onAnswerEnd } from '../http/answers/answer-end';
import { AnswerTooLarge, holdText, MAX_ANSWER_BYTES } from '../http/answers/answer-size';
import { ConcurrencyLimit } from '../http/answers/concurrency-limit';
import { envelopeOf } from './envelopes';
import { ownPath } from './links';
import { RATE_LIMIT_MESSAGE, type Limiter } from '../http/rate-limit';
import { CLIENT_CHALLENGE, withClientCredentials } from './oauth-bodies';
import { matches, senderOf, type Sender } from './sending';
import { readUpload, type Uploaded } from './uploads';
import { sendContextHeaders, stateOf } from '../http/requests/request-state';
import { compileSerialiser } from './serialise';
import type { SendText } from '../http/answers/slow-readers';

export const JSON_TYPE = 'application/json; charset=utf-8';

export interface RestOptions {
  /** Origin of links. */
  origin(request: FastifyRequest): string;
  idempotency: Idempotency;
  limiter: Limiter;
  services: Pick<Services, 'blobs' | 'db'>;
  sendText: SendText;
}

/** Whether an operation needs no credential. */
const isOpen = (guard: Operation['guard']): boolean =>
  guard.length === 0 || guard.some(({ kind }) => kind === 'public');

/**
 * Sets the headers of an answer that caches may hold, only the caller's own where it needs a credential; true where the
 * caller holds this one.
 */
function isHeld(
  request: FastifyRequest,
  reply: FastifyReply,
  body: string,
  { cache_seconds, guard }: Operation,
): boolean {
  const etag = `"${hash('sha256', body, 'base64url')}"`;
  void reply.headers({
    etag,
    'cache-control': `${isOpen(guard) ? 'public' : 'private'}, max-age=${cache_seconds}`,
  });
  return matches(request.headers['if-none-match'], etag);
}

/** Seconds after which a caller at the limit of concurrent streams may retry. */
const RETRY_STREAM = 5;

/** Registers a route whose answer is not a JSON document; it only reads, so that no answer is kept for a repetition. */
function registerSending(
  app: FastifyInstance,
  prepared: Prepared,
  rest: RestRoute,
  sender: Sender,
  { limiter }: RestOptions,
): void {
  const { name, per_minute, kind, sends, guard } = prepared.operation;
  if (kind === 'command') throw new Error(`${name}: only queries send files and streams`);
  const streams = new ConcurrencyLimit();
  const stream = (caller: Caller, reply: FastifyReply, stalled_ms: number) => {
    const end = streams.begin(caller, name);
    if (end === null)
      throw new ApiError('RATE_LIMIT_EXCEEDED', RATE_LIMIT_MESSAGE, { retry_after_seconds: RETRY_STREAM });
    onAnswerEnd(reply, end);
    reply.raw.setTimeout(stalled_ms, () => reply.raw.destroy());
  };
  app.route({
    method: rest.method,
    url: fastifyPath(rest.path),
    config: { ...(guard.some((one) => one.kind === 'signed_link') && { signed_link: true }) },
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      if (per_minute !== undefined) await limiter.countCalls(caller, name, per_minute, 1, reply);
      const admission = await paidAdmission(prepared, askedBy(prepared, request, false), caller, context);
      if (sends?.kind === 'ndjson') stream(admission.caller, reply, sends.stalled_ms);
      const result = await prepared.run(admission, context);
      sendContextHeaders(reply, context);
      return sender(request, reply.code(rest.status), result);
    },
  });
}

/**
 * Admits a caller; a request by a signed link is counted in the bucket of the link.
 * @throws ApiError of the first failed check, RATE_LIMIT_EXCEEDED first
 */
async function paidAdmission(prepared: Prepared, asked: Asked, caller: Caller, { units }: RequestContext) {
  try {
    const admission = await prepared.admit(caller, asked);
    if (admission.link_bucket) await units?.moveTo(admission.link_bucket);
    const unpaid = units?.refusal() ?? null;
    if (unpaid !== null) throw unpaid;
    return admission;
  } catch (error) {
    throw units?.refusal() ?? error;
  }
}

/** A path such as `/v1/api-keys/{id}` in Fastify's syntax. */
export const fastifyPath = (path: string): string => path.replace(/\{(\w+)\}/g, ':$1');

/** Registers the REST route of an operation. */
export function registerRest(app: FastifyInstance, prepared: Prepared, options: RestOptions): void {
  const rest = prepared.operation.rest;
  if (!rest) return;
  const { sends, output } = prepared.operation;
  if (sends) {
    registerSending(app, prepared, rest, senderOf(sends, output), options);
    return;
  }
  const answer = answerWriter(prepared.operation, rest, options.origin);
  const reads = prepared.operation.kind === 'query';
  const send = (reply: FastifyReply, status: number, body: string | null) => {
    void reply.code(status);
    return body === null ? reply.send() : options.sendText(reply.header('content-type', JSON_TYPE), body, reads);
  };
  const headersOf = (request: FastifyRequest, context: RequestContext, result: unknown) =>
    rest.location
      ? { ...context.response_headers, location: options.origin(request) + rest.location(result as never) }
      : context.response_headers;
  const unsafe = rest.method !== 'GET';
  const { name, per_minute, takes, cache_seconds } = prepared.operation;
  app.route({
    method: rest.method,
    url: fastifyPath(rest.path),
    config: {
      ...(rest.oauth && { challenge: CLIENT_CHALLENGE, client_basic: true }),
      ...(rest.standard_parameters && { parameters: prepared.reader.names }),
    },
    handler: async (request, reply) => {
      const { caller, context } = stateOf(request);
      if (per_minute !== undefined) await options.limiter.countCalls(caller, name, per_minute, 1, reply);
      const asked = askedBy(prepared, request, unsafe);
      let uploaded: Uploaded | undefined;
      const read = async () => {
        uploaded = await readUpload(request, takes!, options.services, caller.account_id);
        request.body = { ...uploaded.fields, [takes!.file]: uploaded.file.sha256 };
      };
      let is_unsure = false;
      const drop = async (error: unknown): Promise<never> => {
        await uploaded?.drop();
        throw error;
      };
      const dropRefused = async (error: unknown): Promise<never> => {
        // After a failure a record may name the file: the sweep of a day later asks for it.
        is_unsure = !isRefusal(error);
        if (!is_unsure) await uploaded?.drop();
        throw error;
      };
      const admitted = takes ? prepared.admitFirst(caller, asked, read).catch(drop) : prepared.admit(caller, asked);
      const admission = admitted instanceof Promise ? await admitted : admitted;
      const key = unsafe ? request.headers['idempotency-key'] : undefined;
      let kept = false;
      const run = async (): Promise<StoredAnswer> => {
        const result = await prepared.run(admission, context, uploaded?.file).catch(dropRefused);
        kept = true;
        return {
          status: rest.status,
          headers: headersOf(request, context, result) ?? null,
          body: answer(request, result),
        };
      };
      if (key === undefined) {
        const result = takes
          ? await prepared.run(admission, context, uploaded?.file).catch(dropRefused)
          : await prepared.run(admission, context);
        await uploaded?.keep();
        const headers = headersOf(request, context, result);
        if (headers) void reply.headers(headers);
        const body = answer(request, result);
        if (cache_seconds !== undefined && isHeld(request, reply, body ?? '', prepared.operation))
          return reply.code(304).send();
        return send(reply, rest.status, body);
      }
      const scope = await prepared.idempotencyScope(admission, context);
      const call = { request, route: `${rest.method} ${rest.path}`, key, caller: admission.caller, scope, context };
      const stored = await options.idempotency.answerOnce(call, run).finally(async () => {
        if (is_unsure) return;
        // Dropped when the call was refused, or answered from the first call, which had its own file.
        await (kept ? uploaded?.keep() : uploaded?.drop());
      });
      if (stored.headers) void reply.headers(stored.headers);
      return send(reply, stored.status, stored.body);
    },
  });
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

/** Whether nothing was done. */
const isRefusal = (error: unknown): boolean => error instanceof ApiError && error.status < 500;

const NOTHING: Readonly<Record<string, unknown>> = Object.freeze({});
const NO_HEADERS: Readonly<Record<string, string>> = Object.freeze({});

function inputOf(prepared: Prepared, request: FastifyRequest, unsafe: boolean): Record<string, unknown> {
  const texts: Record<string, unknown> = {};
  const query = request.query as Record<string, unknown>;
  refuseOddUrl(request.url);
  const { takes, rest } = prepared.operation;
  // OAuth routes ignore the query, because every proxy logs URLs and must not see secrets.
  for (const name in rest?.oauth ? NOTHING : query) {
    // An assignment would change the object's prototype instead of adding a member.
    if (name === '__proto__') {
      if (rest?.standard_parameters) continue;
      throw new ApiError('VALIDATION_ERROR', '__proto__: is not a member of this request');
    }
    // `token` is a browser source's credential, not a member of any input.
    if (name !== 'token') texts[name] = query[name];
  }
  for (const [name, header] of Object.entries(rest?.headers ?? NO_HEADERS)) {
    if (Object.hasOwn(texts, name)) throw new ApiError('VALIDATION_ERROR', `${name}: is sent as the header ${header}`);
    const value = request.headers[header.toLowerCase()];
    // Node reads headers as Latin-1.
    if (value !== undefined) texts[name] = Buffer.from(String(value), 'latin1').toString();
  }
  Object.assign(texts, request.params);
  if (takes) {
    // Fields of a multipart body are texts, like those of a query.
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
  const serialise = compileSerialiser(rest.answer?.schema ?? operation.output, envelope, MAX_ANSWER_BYTES);
  const shown = (output: unknown) => (rest.answer ? rest.answer.of(output) : output);
  const pathOf = (request: FastifyRequest, output: unknown) => rest.location?.(output as never) ?? ownPath(request.url);
  return (request, output) => {
    try {
      return holdText(serialise(envelope.body(shown(output), origin(request) + pathOf(request, output))));
    } catch (error) {
      throw error instanceof RawJsonTooLong ? new AnswerTooLarge() : error;
    }
  };
}

/** Refuses malformed escapes, which would otherwise reach operations undecoded. */
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
