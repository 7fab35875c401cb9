import type { FastifyReply, FastifyRequest } from 'fastify';
import { randomBytes } from 'node:crypto';
import type { IncomingHttpHeaders } from 'node:http';
import type { Caller, RequestContext } from '../../../access/authentication/caller';
import type { Resolution } from '../../../access/authentication/resolve';
import { type Span, traceIdOf } from '../../../engines/tracing/port';

/** Parts of a request that the credential resolver reads. */
export interface CredentialSource {
  headers: IncomingHttpHeaders;
  method: string;
  /** Path and query as received. */
  url: string;
  query: Readonly<Record<string, unknown>>;
  ip: string;
}

/**
 * Resolves the caller; an unknown or expired credential is `anonymous`, with the reason (spec doc1 §5.1 rule 4).
 * Returns a promise only when a lookup is needed.
 */
export type ResolveCaller = (source: CredentialSource) => Promise<Resolution> | Resolution;

/** State of a request before it reaches an operation. */
export interface RequestState {
  caller: Caller;
  /** Reason why the presented credential was not accepted. */
  failure: Resolution['failure'];
  context: RequestContext;
}

declare module 'fastify' {
  interface FastifyRequest {
    state: RequestState | null;
    correlation_id: string;
    /** The client's address without port; Fastify's own `ip` is the text that a proxy sent. */
    readonly client_ip: string;
    /** Null while tracing is off. */
    span: Span | null;
  }
  interface FastifyContextConfig {
    /** `exempt`: no caller is resolved and no limit counted. Default: one unit, before the body is read. */
    limit?: 'exempt';
    /**
     * Frequent route: successes are not logged, because the metrics count them; failures are logged.
     */
    routine?: true;
    /** Reads HTTP Basic as an OAuth client's id and secret. */
    client_basic?: true;
    /** Signed links open it. */
    signed_link?: true;
    /** Names of parameters that a body may have once; it may have unknown ones, repeated or not. */
    parameters?: ReadonlySet<string>;
    /** Challenge of a 401 of this route (`WWW-Authenticate`). Default: a bearer token. */
    challenge?: string;
    /** Headers that carry the signature of a webhook. */
    signatures?: readonly string[];
  }
}

const CORRELATION_ID = /^[A-Za-z0-9._:-]{1,128}$/;
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/**
 * Random prefix per process for counted ids: as unique as random ids, without system randomness on each request.
 */
const PROCESS_ID = randomBytes(8).toString('hex');
let made = 0;

/** The caller's own `x-correlation-id` when it is harmless, else a new one. */
export function correlationId(request: FastifyRequest): string {
  const sent = request.headers['x-correlation-id'];
  if (typeof sent === 'string' && CORRELATION_ID.test(sent)) return sent;
  made = (made + 1) % 0x1_0000_0000;
  return PROCESS_ID + made.toString(16).padStart(8, '0');
}

/** The caller's own traceparent, when it is well-formed. */
export function traceparentOf(request: FastifyRequest): string | null {
  const sent = request.headers.traceparent;
  return typeof sent === 'string' && TRACEPARENT.test(sent) ? sent : null;
}

/** Traceparent of the request's span; while tracing is off, of its caller. */
export const traceOf = (request: FastifyRequest): string | null => request.span?.traceparent ?? traceparentOf(request);

/** Facts of every log line of a request. */
export function logFacts(request: FastifyRequest): { correlation_id: string; trace_id?: string } {
  const { correlation_id } = request;
  const trace_id = traceIdOf(traceOf(request));
  return trace_id === undefined ? { correlation_id } : { correlation_id, trace_id };
}

export function contextOf(request: FastifyRequest): RequestContext {
  return {
    correlation_id: request.correlation_id,
    trace: traceOf(request),
    ip: request.client_ip,
    now: Date.now(),
    idempotency_seed: null,
    onGone: goneOf(request),
  };
}

/** Shares one listener on the connection among all callbacks of the request; removes it without callbacks. */
function goneOf(request: FastifyRequest): NonNullable<RequestContext['onGone']> {
  let listeners: Set<() => void> | undefined;
  const tell = () => [...listeners!].forEach((listener) => listener());
  return (listener) => {
    const { socket } = request.raw;
    const all = (listeners ??= new Set());
    if (all.size === 0) socket.once('close', tell);
    all.add(listener);
    // A connection that ended before emits no further event.
    if (socket.destroyed) listener();
    return () => {
      if (all.delete(listener) && all.size === 0) socket.off('close', tell);
    };
  };
}

/** @throws Error when a route forgot to have its caller resolved; never the caller's fault. */
export function stateOf(request: FastifyRequest): RequestState {
  if (!request.state) throw new Error(`no caller was resolved for ${request.method} ${request.url}`);
  return request.state;
}

/** Adds the headers that the operation has set to the answer. */
export function sendContextHeaders(reply: FastifyReply, context: RequestContext): void {
  if (context.response_headers) void reply.headers(context.response_headers);
}

const failedIn = new WeakMap<object, RequestContext>();

/** Records the request of an error, because Apollo formats errors without their request. */
export function attachContext(error: unknown, context: RequestContext): void {
  if (typeof error === 'object' && error !== null) failedIn.set(error, context);
}

const failed = new WeakSet<FastifyRequest | RequestContext>();

/** Notes that the failure of a request is in the log, so that its end is no second line. */
export const noteFailure = (of: FastifyRequest | RequestContext): void => void failed.add(of);

/** Notes the failure of the request to which the error was attributed. Returns false after an earlier one. */
export function noteFailureOf(error: unknown): boolean {
  const context = typeof error === 'object' && error !== null ? failedIn.get(error) : undefined;
  if (!context) return true;
  const is_first = !failed.has(context);
  failed.add(context);
  return is_first;
}

export const hasFailed = (request: FastifyRequest): boolean =>
  failed.has(request) || (request.state !== null && failed.has(request.state.context));

/** Facts of every log line of the request to which the error was attributed. */
export function logFactsOf(error: unknown): { correlation_id?: string; trace_id?: string } {
  const context = typeof error === 'object' && error !== null ? failedIn.get(error) : undefined;
  if (!context) return {};
  const trace_id = traceIdOf(context.trace);
  return { correlation_id: context.correlation_id, ...(trace_id !== undefined && { trace_id }) };
}
