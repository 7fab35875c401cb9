import type { WebSocket } from 'ws';

/** Request of a vendor's client. Only its method and host are logged. */
export interface HttpRequest {
  method: 'GET' | 'HEAD' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';
  /** Its host must be one of the client's; https, without user and password. */
  url: string | URL;
  headers?: Readonly<Record<string, string>>;
  body?: string | Buffer;
  /** Sent as `Idempotency-Key`: the call bears repeating, since the other side knows it again. */
  idempotency_key?: string;
  /** Whether the call bears repeating without a key. Default: GET, HEAD, PUT and DELETE do. */
  repeatable?: boolean;
  /** Whether a 429 is repeated here; false where the caller pauses more than this call. Default true. */
  repeat_limited?: boolean;
  /** Milliseconds for everything: name, connection, tries, pauses, the last byte of the answer. Default 10 s. */
  deadline_ms?: number;
  /** Most bytes of the answer's body. Default 1 MiB. */
  max_bytes?: number;
  signal?: AbortSignal;
  /** Part of the host whose failures keep no call of another part from being made: a channel. */
  part?: string;
}

export interface HttpAnswer {
  status: number;
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>;
  body: Buffer;
  /** Value of `Retry-After` in milliseconds. */
  retry_after_ms: number | undefined;
}

/** An answer that is no success, for jobs that try again: it carries how long the other side asked to wait. */
export class HttpFailed extends Error {
  readonly retry_after_ms: number | undefined;
  constructor(
    readonly host: string,
    readonly status: number,
    retry_after_ms?: number,
  ) {
    super(`${host} answered ${status}`);
    this.name = 'HttpFailed';
    this.retry_after_ms = retry_after_ms;
  }
}

/** Streamed answer; its body comes piece by piece. */
export interface HttpStream {
  status: number;
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>;
  retry_after_ms: number | undefined;
  /**
   * To be read once; leaving it, or the request's signal, ends the connection. It throws what cut it off. Its pace is
   * the reader's.
   */
  chunks: AsyncIterable<Buffer>;
}

/** A WebSocket that is asked for: `ws` or `wss`, its host one of the client's. */
export interface SocketRequest {
  url: string | URL;
  headers?: Readonly<Record<string, string>>;
  /** Most bytes of one message; a longer one closes the socket. Default 1 MiB. */
  max_bytes?: number;
}

/** HTTP client of one vendor. */
export interface HttpClient {
  /**
   * Redirects are not followed: they are answers. What fails in passing is tried again within the deadline, unless the
   * call may have been done and does not bear repeating.
   * @throws NotSent when nothing reached the other side: refused by our rules, no connection, circuit open
   * @throws OutcomeUnknown when the request was sent and no whole answer came
   */
  call(request: HttpRequest): Promise<HttpAnswer>;
  /**
   * The answer when it is a success (2xx).
   * @throws HttpFailed for any other; OutcomeUnknown for one of 500 and more to what does not bear repeating, unless
   * the other side says that it did nothing; and as {@link HttpClient.call}
   */
  ask(request: HttpRequest): Promise<HttpAnswer>;
  /**
   * Sends a request once whose answer is long: `deadline_ms` is for its head, and nothing bounds its body.
   * @throws NotSent, OutcomeUnknown
   */
  stream(request: HttpRequest): Promise<HttpStream>;
  /**
   * A socket that is being opened, under the rules for calls: the client's hosts, over TLS, never a private address.
   * What goes wrong is its `error`, before its `close`.
   * @throws NotSent for an address that our rules refuse
   */
  socket(request: SocketRequest): WebSocket;
}

export interface HttpClients {
  /**
   * @param name in metrics and traces, a vendor's slug
   * @param hosts exact (`api.example.com`), or all below one (`*.example.com`), or every public one (`*`); with
   * a port where it is not 443
   */
  client(name: string, hosts: readonly string[]): HttpClient;
  close(): Promise<void>;
}
