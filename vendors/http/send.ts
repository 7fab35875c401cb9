import type { LookupFunction } from 'node:net';
import { Agent, DecoratorHandler, type Dispatcher } from 'undici';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { HttpAnswer, HttpRequest, HttpStream } from './port';
import { retryAfterMs } from './retry-after';

export interface Sending extends HttpRequest {
  url: URL;
  signal: AbortSignal;
  max_bytes: number;
}

export interface Sender {
  /** Sends a request and reads its whole answer. @throws NotSent, OutcomeUnknown */
  send(request: Sending): Promise<HttpAnswer>;
  /** Sends a request and reads the head of its answer. @throws NotSent, OutcomeUnknown */
  open(request: Omit<Sending, 'max_bytes'>): Promise<HttpStream>;
  close(): Promise<void>;
}

/** Connections to one host, and so concurrent calls to it. The callers have smaller bounds of their own. */
const CONNECTIONS = 128;
const CONNECT_MS = 5_000;
const HEADER_BYTES = 16_384;
/** The deadline of a call ends it sooner. */
const SILENCE_MS = 30_000;

/** Connections to the outside, to the addresses that `lookup` gives alone. */
export function createSender(lookup: LookupFunction): Sender {
  const agent = new Agent({
    connect: { lookup, timeout: CONNECT_MS },
    maxHeaderSize: HEADER_BYTES,
    headersTimeout: SILENCE_MS,
    bodyTimeout: SILENCE_MS,
    keepAliveTimeout: 10_000,
    connections: CONNECTIONS,
    // One request at a time on a connection: an answer can belong to no other.
    pipelining: 1,
  });
  // Of their own: an answer that does not end holds its connection, and is quiet for as long as it has nothing to say.
  const streams = new Agent({
    connect: { lookup, timeout: CONNECT_MS },
    maxHeaderSize: HEADER_BYTES,
    headersTimeout: SILENCE_MS,
    bodyTimeout: 0,
    pipelining: 1,
  });
  return {
    send: (request) => send(agent, request),
    open: (request) => openStream(streams, request),
    close: async () => void (await Promise.all([agent.destroy(), streams.destroy()])),
  };
}

/**
 * Sends a request and reads its whole answer. Compressed answers, which no request asks for, are refused, since few
 * bytes could become many.
 * @throws NotSent, OutcomeUnknown; their messages name the host and what happened, nothing of the request
 */
async function send(agent: Dispatcher, request: Sending): Promise<HttpAnswer> {
  const { max_bytes } = request;
  return exchange(agent, request, async ({ status, headers, retry_after_ms, body }) => {
    const chunks: Buffer[] = [];
    let bytes = 0;
    for await (const chunk of body) {
      bytes += (chunk as Buffer).length;
      // Leaving the loop ends the connection.
      if (bytes > max_bytes) throw new Error(`the answer is longer than ${max_bytes} bytes`);
      chunks.push(chunk as Buffer);
    }
    return { status, headers, body: Buffer.concat(chunks), retry_after_ms };
  });
}

/** @throws as {@link send} */
const openStream = (agent: Dispatcher, request: Omit<Sending, 'max_bytes'>): Promise<HttpStream> =>
  exchange(agent, request, async ({ body, ...head }) => ({ ...head, chunks: body as AsyncIterable<Buffer> }));

type Answered = Omit<HttpStream, 'chunks'> & { body: Dispatcher.ResponseData['body'] };

async function exchange<T>(
  agent: Dispatcher,
  request: Omit<Sending, 'max_bytes'>,
  take: (answered: Answered) => Promise<T>,
): Promise<T> {
  const { url, method, headers, body, idempotency_key, signal } = request;
  let sent = false;
  const dispatcher = agent.compose((dispatch) => (options, handler) => {
    const watched: Dispatcher.DispatchHandler = new DecoratorHandler(handler);
    const begin = watched.onRequestStart?.bind(watched);
    // The first byte is about to leave.
    watched.onRequestStart = (...given) => {
      sent = true;
      begin?.(...given);
    };
    return dispatch(options, watched);
  });
  try {
    const answering = dispatcher.request({
      origin: url.origin,
      path: `${url.pathname}${url.search}`,
      method,
      headers: {
        ...lowerCase(headers),
        'accept-encoding': 'identity',
        ...(idempotency_key === undefined ? {} : { 'idempotency-key': idempotency_key }),
      },
      body,
      signal,
    });
    const given_up = whenAborted(signal);
    // undici ignores the signal while it connects; a request whose signal is aborted by then does not leave.
    answering.catch(() => undefined);
    const answer = await Promise.race([answering, given_up.promise]).finally(given_up.forget);
    const said = Object.fromEntries(
      Object.entries(answer.headers).flatMap(([name, value]) =>
        value === undefined ? [] : [[name.toLowerCase(), Array.isArray(value) ? value.join(', ') : value]],
      ),
    );
    const encoding = said['content-encoding'];
    if (encoding !== undefined && encoding !== 'identity') {
      answer.body.on('error', () => undefined).destroy();
      throw new Error('a compressed answer was not asked for');
    }
    const retry_after_ms = retryAfterMs(said['retry-after']);
    return await take({ status: answer.statusCode, headers: said, retry_after_ms, body: answer.body });
  } catch (error) {
    const what = `${url.hostname}: ${reason(error, signal)}`;
    throw sent ? new OutcomeUnknown(what, { cause: error }) : new NotSent(what, { cause: error });
  }
}

/** So that a name is there once. */
const lowerCase = (headers: HttpRequest['headers'] = {}) =>
  Object.fromEntries(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));

/** Rejects when the signal is aborted, until that is forgotten: a signal may outlive thousands of calls. */
function whenAborted(signal: AbortSignal): { promise: Promise<never>; forget: () => void } {
  let abort!: () => void;
  const promise = new Promise<never>((_, reject) => (abort = () => reject(signal.reason as Error)));
  promise.catch(() => undefined);
  if (signal.aborted) abort();
  else signal.addEventListener('abort', abort, { once: true });
  return { promise, forget: () => signal.removeEventListener('abort', abort) };
}

/** A kind, not a message: what undici says may quote the request. */
function reason(error: unknown, signal: AbortSignal): string {
  if (signal.aborted) return (signal.reason as Error)?.name === 'TimeoutError' ? 'no time is left' : 'given up';
  const { code, message } = error as { code?: string; message?: string };
  return code ?? message ?? 'failed';
}
