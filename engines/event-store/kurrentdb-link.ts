import { KurrentDBClient, ErrorType, isCommandError } from '@kurrent/kurrentdb-client';

/** The oldest server with appends over several streams; no release under the name EventStoreDB has them. */
export const NEEDED_VERSION = '25.1';
const APPEND_SESSION = { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendSession' };

/** What the client knows of the server it found, and its way to close; the client keeps both to itself in its types only. */
interface Internals {
  capabilities: Promise<{ serverVersion: string; supports(method: { path: string }): boolean }>;
  getChannel(): Promise<{ close(): void }>;
}

/**
 * The connection to one KurrentDB: a client that is thrown away and made anew after a failure that it may not recover from by itself
 * (a failed discovery, or a deadline while it asks for the server's features, stays cached in it for ever).
 */
export class KurrentLink {
  private current: KurrentDBClient | undefined;
  private readonly holds = new Map<KurrentDBClient, number>();
  private closed = false;
  private readonly url: string;
  /** `host:port,…` for messages: the credentials stay out of them. */
  readonly hosts: string;

  /** @throws Error when the connection string is not one. */
  constructor(url: string) {
    // The client prints a deprecation to the console for the old scheme, which means the same.
    this.url = withDeadline(url.replace(/^esdb(?=[:+])/, 'kurrentdb'));
    this.hosts = /:\/\/(?:[^@/]*@)?([^/?]+)/.exec(url)?.[1] ?? 'unknown host';
    try {
      this.client();
    } catch (error) {
      throw new Error(`not a KurrentDB connection string: ${clean((error as Error).message, url)}`);
    }
  }

  client(): KurrentDBClient {
    if (this.closed) throw new Error('the event store is closed');
    return (this.current ??= this.connect());
  }

  private connect(): KurrentDBClient {
    const client = KurrentDBClient.connectionString(this.url);
    // The half of the client that reads sends a password as it stands in the URL, %40 and all; told like this, both halves send the same.
    const [, username, password] = /^[^:]+:\/\/([^:@/]+):([^@]*)@/.exec(this.url) ?? [];
    if (username !== undefined && password !== undefined) {
      const credentials = { username: decodeURIComponent(username), password: decodeURIComponent(password) };
      client.setCredentialsProvider(() => Promise.resolve(credentials));
    }
    return client;
  }

  /** Version of the server found, and whether it takes appends over several streams. */
  async server(): Promise<{ version: string; appends: boolean }> {
    const { serverVersion, supports } = await (this.client() as unknown as Internals).capabilities;
    return { version: serverVersion, appends: supports(APPEND_SESSION) };
  }

  /** This client failed: the next one asked for is new, unless another caller has replaced it already. */
  renew(failed: KurrentDBClient, error: unknown): void {
    // A node that is not the leader has named the leader, and the client goes there by itself.
    if (this.current !== failed || typeOf(error) === ErrorType.NOT_LEADER) return;
    this.current = undefined;
    if (!this.holds.has(failed)) void dispose(failed);
  }

  /**
   * Runs `work` on the client of the moment, which stays open for its length: a call that begins on a client that someone else just closed
   * is never answered at all.
   */
  async use<T>(work: (client: KurrentDBClient) => Promise<T>): Promise<T> {
    const client = this.client();
    this.hold(client);
    try {
      return await work(client);
    } finally {
      this.release(client);
    }
  }

  /** A live subscription runs on this client: it must not be closed under it. Closing a client ends its subscriptions without a word. */
  hold(client: KurrentDBClient): void {
    this.holds.set(client, (this.holds.get(client) ?? 0) + 1);
  }

  release(client: KurrentDBClient): void {
    const left = (this.holds.get(client) ?? 1) - 1;
    if (left > 0) return void this.holds.set(client, left);
    this.holds.delete(client);
    if (this.current !== client) void dispose(client);
  }

  async close(): Promise<void> {
    this.closed = true;
    const last = this.current;
    this.current = undefined;
    if (last) await dispose(last);
  }
}

/** The client's own default of 10 s is long for a link that has gone silent. */
function withDeadline(url: string): string {
  if (/[?&]default_?deadline=/i.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}defaultDeadline=5000`;
}

async function dispose(client: KurrentDBClient): Promise<void> {
  try {
    await client.dispose();
    (await (client as unknown as Internals).getChannel()).close();
  } catch {
    // A client whose discovery failed has no channel to close.
    return;
  }
}

const clean = (message: string, url: string): string => message.split(url).join('…').split('\n')[0]!;

const LASTING: readonly string[] = [
  ErrorType.ACCESS_DENIED,
  ErrorType.UNSUPPORTED,
  ErrorType.INVALID_ARGUMENT,
  ErrorType.STREAM_DELETED,
  ErrorType.STREAM_TOMBSTONED,
  ErrorType.MAXIMUM_APPEND_SIZE_EXCEEDED,
  ErrorType.APPEND_RECORD_SIZE_EXCEEDED,
  ErrorType.TRANSACTION_MAX_SIZE_EXCEEDED,
  ErrorType.WRONG_EXPECTED_VERSION,
];
/** gRPC: INVALID_ARGUMENT, PERMISSION_DENIED, UNIMPLEMENTED, UNAUTHENTICATED. */
const LASTING_CODES: readonly unknown[] = [3, 7, 12, 16];

const typeOf = (error: unknown): string | undefined =>
  error instanceof Error && isCommandError(error) ? error.type : undefined;
const codeOf = (error: unknown): unknown => (error as { code?: unknown } | undefined)?.code;

/** Whether an error of the client may be gone on another try: everything but a refusal by the server. */
export function isPassing(error: unknown): boolean {
  // The client's own failures (no node found, a broken stream) are plain errors; a programming error is not worth a retry.
  if (error instanceof TypeError || error instanceof RangeError || error instanceof SyntaxError) return false;
  const type = typeOf(error);
  return !(type !== undefined && LASTING.includes(type)) && !LASTING_CODES.includes(codeOf(error));
}

export const isRefusedLogin = (error: unknown): boolean =>
  typeOf(error) === ErrorType.ACCESS_DENIED || codeOf(error) === 7 || codeOf(error) === 16;

/** The server refuses what was sent, for its size or its form. */
export const isRefusedContent = (error: unknown): boolean =>
  codeOf(error) === 3 || /size-exceeded/.test(typeOf(error) ?? '');

/** An error's first line, without the stack of its transport. */
export const reason = (error: unknown): string => String((error as Error).message ?? error).split('\n')[0]!;
