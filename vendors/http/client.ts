import type { lookup } from 'node:dns';
import { BrokenCircuitError } from 'cockatiel';
import type { WebSocket } from 'ws';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { retry } from '../../lib/async/retry';
import type { Metrics } from '../../engines/metrics/port';
import { NO_TRACING, type Tracing } from '../../engines/tracing/port';
import { guardedLookup } from './addresses';
import { Circuits, GivenUp } from './circuits';
import { destination } from './destinations';
import {
  HttpFailed,
  type HttpAnswer,
  type HttpClients,
  type HttpRequest,
  type HttpStream,
  type SocketRequest,
} from './port';
import { openSocket } from './socket';
import type { Sender } from './send';

export interface HttpClientsOptions {
  metrics: Metrics;
  /** Default: off. */
  tracing?: Tracing;
  /** In development alone: this machine and private networks may be called, over plain http too. Default false. */
  allow_loopback?: boolean;
  /** How names are resolved. Default: as the system does. */
  resolve?: typeof lookup;
}

const DEADLINE_MS = 10_000;
const MAX_BYTES = 1 << 20;
const TRIES = 4;
const PAUSES = { first_ms: 200, most_ms: 5_000 };
const SECONDS = [0.01, 0.05, 0.1, 0.3, 1, 3, 10, 30];

const REPEATABLE: ReadonlySet<string> = new Set(['GET', 'HEAD', 'PUT', 'DELETE']);
const bearsRepeating = ({ repeatable, idempotency_key, method }: HttpRequest): boolean =>
  repeatable ?? (idempotency_key !== undefined || REPEATABLE.has(method));
/** Statuses of an unavailable or busy vendor. */
const isPassingStatus = (status: number) => status === 408 || status === 425 || status === 429 || status >= 500;
/** Answers by which the vendor states that it did nothing. */
const isUndone = ({ status, retry_after_ms }: HttpAnswer) =>
  status === 429 || (status === 503 && retry_after_ms !== undefined);

/** An answer after which the call is tried again; given back when no try is left. */
class Again extends Error {
  constructor(readonly answer: HttpAnswer) {
    super('again');
  }
}

/** Failure that no further try can change, besides our own rules. */
class Failing extends Error {
  constructor(readonly answer: HttpAnswer) {
    super('failing');
  }
}

/**
 * Every call to the outside goes through here: to the client's hosts alone, never to private addresses, bounded in time
 * and bytes, tried again where that is safe, and not at all for a while where a host keeps failing. Design §10.
 */
export function createHttpClients(options: HttpClientsOptions): HttpClients {
  const { tracing = NO_TRACING, allow_loopback = false, resolve } = options;
  const seconds = options.metrics.histogram(
    'lumio_http_client_seconds',
    'Duration of a call to the outside, all tries',
    SECONDS,
    ['client', 'outcome'],
  );
  const tries = options.metrics.counter('lumio_http_client_tries_total', 'Requests sent to the outside', ['client']);
  const open = options.metrics.gauge('lumio_http_client_circuits_open', 'Hosts that are not called for a while', [
    'client',
  ]);
  let opened: Sender | undefined;
  const sender = (): Sender => {
    // Loaded by the first call: undici takes longer to load than the rest of a start together.
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- an import would be loaded by all
    const { createSender } = require('./send') as typeof import('./send');
    return (opened ??= createSender(guardedLookup(allow_loopback, resolve)));
  };

  function makeClient(name: string, hosts: readonly string[]) {
    const circuits = new Circuits((hosts) => open.set(hosts, { client: name }));

    async function call(request: HttpRequest): Promise<HttpAnswer> {
      const { deadline_ms = DEADLINE_MS, max_bytes = MAX_BYTES } = request;
      const url = destination(request.url, { hosts, allow_loopback });
      const repeatable = bearsRepeating(request);
      // AbortSignal.timeout would keep the call's objects until the deadline, long after its answer.
      const late = new AbortController();
      const timer = setTimeout(() => late.abort(new DOMException('no time is left', 'TimeoutError')), deadline_ms);
      timer.unref();
      // The call's own signal: `AbortSignal.any` leaves something behind in the caller's, which may live for ever.
      const { signal } = late;
      const giveUp = () => late.abort(request.signal!.reason);
      if (request.signal?.aborted) giveUp();
      else request.signal?.addEventListener('abort', giveUp, { once: true });
      const throughCircuit = circuits.of(url.host, request.part);
      let unknown: OutcomeUnknown | undefined;
      let answered: HttpAnswer | undefined;

      const attempt = async (): Promise<HttpAnswer> => {
        try {
          return await throughCircuit(async () => {
            tries.inc(1, { client: name });
            const sent = sender().send({ ...request, url, signal, max_bytes });
            const answer = await sent.catch((error: unknown) => {
              throw request.signal?.aborted ? new GivenUp('given up by the caller', { cause: error }) : error;
            });
            if (answer.status >= 500) throw new Failing(answer);
            return answer;
          });
        } catch (error) {
          if (error instanceof Failing) return error.answer;
          if (error instanceof GivenUp) throw error.cause;
          if (error instanceof BrokenCircuitError) throw new NotSent(`${url.hostname} keeps failing`, { cause: error });
          throw error;
        }
      };

      try {
        return await retry(
          async () => {
            const answer = (answered = await attempt());
            const is_final = answer.status === 429 && request.repeat_limited === false;
            if (!is_final && isPassingStatus(answer.status) && (repeatable || isUndone(answer)))
              throw new Again(answer);
            return answer;
          },
          {
            ...PAUSES,
            tries: TRIES,
            within_ms: deadline_ms,
            signal,
            passing: (error) => {
              if (error instanceof OutcomeUnknown) unknown = error;
              return error instanceof Again || (error instanceof OutcomeUnknown ? repeatable : reachedNobody(error));
            },
            asked_ms: (error) => (error instanceof Again ? error.answer.retry_after_ms : undefined),
          },
        );
      } catch (error) {
        if (error instanceof Again) return error.answer;
        // The outcome of an earlier try counts, whatever kept the last one from being sent.
        if (unknown !== undefined) throw unknown;
        if (answered !== undefined) return answered;
        if (error instanceof NotSent || error instanceof OutcomeUnknown) throw error;
        throw new NotSent(`${url.hostname}: no time is left`, { cause: error });
      } finally {
        clearTimeout(timer);
        request.signal?.removeEventListener('abort', giveUp);
      }
    }

    async function observed(request: HttpRequest): Promise<HttpAnswer> {
      const begun = performance.now();
      const span = tracing.start(`${request.method} ${name}`, {
        kind: 'client',
        attributes: { method: request.method },
      });
      let outcome = 'not_sent';
      let failure: unknown;
      try {
        const answer = await call(request);
        outcome = `${Math.floor(answer.status / 100)}xx`;
        span.set({ status: answer.status });
        return answer;
      } catch (error) {
        failure = error;
        if (error instanceof OutcomeUnknown) outcome = 'unknown';
        throw error;
      } finally {
        span.end(failure);
        seconds.observe((performance.now() - begun) / 1000, { client: name, outcome });
      }
    }

    return {
      call: observed,
      async stream(request: HttpRequest): Promise<HttpStream> {
        const url = destination(request.url, { hosts, allow_loopback });
        tries.inc(1, { client: name });
        // Of the head alone: the body may take as long as it likes.
        const late = new AbortController();
        const timer = setTimeout(() => late.abort(new Error('no time is left')), request.deadline_ms ?? DEADLINE_MS);
        const signal = request.signal ? AbortSignal.any([request.signal, late.signal]) : late.signal;
        try {
          return await sender().open({ ...request, url, signal });
        } finally {
          clearTimeout(timer);
        }
      },
      socket({ url, headers, max_bytes = MAX_BYTES }: SocketRequest): WebSocket {
        const address = new URL(url);
        if (!/^wss?:$/.test(address.protocol)) throw new NotSent(`${address.hostname}: no address of a WebSocket`);
        const over_http = new URL(String(url).replace(/^ws/i, 'http'));
        const checked = destination(over_http, { hosts, allow_loopback });
        tries.inc(1, { client: name });
        return openSocket(checked, { headers, max_bytes, lookup: guardedLookup(allow_loopback, resolve) });
      },
      async ask(request: HttpRequest): Promise<HttpAnswer> {
        const answer = await observed(request);
        if (answer.status >= 200 && answer.status < 300) return answer;
        const failed = new HttpFailed(new URL(request.url).hostname, answer.status, answer.retry_after_ms);
        // A gateway answers 504 for what went on behind it.
        if (answer.status < 500 || isUndone(answer) || bearsRepeating(request)) throw failed;
        throw new OutcomeUnknown(failed.message, { cause: failed });
      },
    };
  }

  return { client: makeClient, close: async () => opened?.close() };
}

/** Of what was not sent: what another try may meet otherwise. Our own rules stay what they are. */
const reachedNobody = (error: unknown): boolean => error instanceof NotSent && error.cause !== undefined;
