import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { retry, type RetryOptions, type Try } from '../../../lib/async/retry';
import { EngineUnavailable } from '../../../kernel/failures';
import { isPassingAtKurrentdb, leaderOf, type NodeAddress } from './errors';

/** The oldest server with appends over several streams; no release under the name EventStoreDB has them. */
export const NEEDED_VERSION = '25.1';
const APPEND_SESSION = { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendSession' };

/**
 * Capabilities of the connected server, and the channel to close: private members of the client's types, reachable at
 * run time.
 */
interface Internals {
  capabilities: Promise<{ serverVersion: string; supports(method: { path: string }): boolean }>;
  getChannel(): Promise<{ close(): void }>;
}

/**
 * Connection to a KurrentDB: a client that is replaced after a failure from which it may not recover by itself (it
 * caches a failed discovery, or a deadline while it reads the server's features, for ever).
 */
export class KurrentLink {
  private current: KurrentDBClient | undefined;
  private readonly holds = new Map<KurrentDBClient, number>();
  private closed = false;
  private readonly url: string;
  /** Leader that a follower has named: the next client connects to it without discovery. */
  private leader: NodeAddress | undefined;
  /** Longest wait for a read of one event, including a new connection. */
  readonly read_ms: number;
  /** `host:port,…` for messages, without the credentials. */
  readonly hosts: string;

  /** @throws Error when the connection string is not one. */
  constructor(url: string) {
    // The client prints a deprecation to the console for the old scheme, which means the same.
    this.url = withTimes(withoutDiscovery(url.replace(/^esdb(?=[:+])/, 'kurrentdb')));
    this.read_ms = Math.max(TIMES.defaultDeadline, timeIn(this.url, 'defaultDeadline') ?? 0);
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
    const client = KurrentDBClient.connectionString(this.leader ? atNode(this.url, this.leader) : this.url);
    // The client's half for reads sends a password as it stands in the URL, %40 and all; with a provider both halves
    // send it decoded.
    const [, username, password] = /^[^:]+:\/\/([^:@/]+):([^@]*)@/.exec(this.url) ?? [];
    if (username !== undefined && password !== undefined) {
      const credentials = { username: decodeURIComponent(username), password: decodeURIComponent(password) };
      client.setCredentialsProvider(() => Promise.resolve(credentials));
    }
    return client;
  }

  /** Version of the server, and whether it supports appends over several streams. */
  async server(): Promise<{ version: string; appends: boolean }> {
    const { serverVersion, supports } = await (this.client() as unknown as Internals).capabilities;
    return { version: serverVersion, appends: supports(APPEND_SESSION) };
  }

  /**
   * Drops a failed client, unless another caller has replaced it already; the next {@link client} is new. When a node
   * named the leader, both halves of the new client connect to the leader; after any other failure, or when the named
   * leader is the node just used, the new client starts from the connection string again.
   */
  renew(failed: KurrentDBClient, error: unknown): void {
    if (this.current !== failed) return;
    const named = leaderOf(error);
    this.leader = named?.address === this.leader?.address && named?.port === this.leader?.port ? undefined : named;
    this.current = undefined;
    if (!this.holds.has(failed)) void dispose(failed);
  }

  /**
   * Runs `work` on the present client, which stays open meanwhile, because a call on a client that another caller has
   * just closed never gets an answer.
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

  /**
   * Retries the work until it succeeds; after a passing failure with another client.
   * @throws EngineUnavailable when passing failures exhaust the time or the tries; a lasting failure at once
   */
  async persist<T>(work: (attempt: Try) => Promise<T>, options: Omit<RetryOptions, 'passing'>): Promise<T> {
    let client: KurrentDBClient | undefined;
    const failed: RetryOptions['onFailure'] = (error, failures, pause_ms) => {
      options.onFailure?.(error, failures, pause_ms);
      if (client) this.renew(client, error);
    };
    try {
      return await retry(
        (attempt) => {
          client = this.client();
          return work(attempt);
        },
        { ...options, passing: isPassingAtKurrentdb, onFailure: failed },
      );
    } catch (error) {
      throw isPassingAtKurrentdb(error) ? new EngineUnavailable('kurrentdb', error) : error;
    }
  }

  /**
   * Keeps a client open while a subscription or call uses it, because closing a client ends its subscriptions silently.
   */
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

/**
 * Removes `+discover` from a URL with several hosts: the client tries all of them without it as well, but with it reads
 * only while the first host is up.
 */
const withoutDiscovery = (url: string): string => url.replace(/^(\w+)\+discover(:\/\/(?:[^@/]*@)?[^/?]*,)/, '$1$2');

/** Shorter than the client's defaults of 10 s, which are long for a silent connection. */
const TIMES = { defaultDeadline: 5000, keepAliveTimeout: 5000 };

function withTimes(url: string): string {
  const added = Object.entries(TIMES).filter(([name]) => !timeIn(url, name));
  return added.reduce((text, [name, ms]) => `${text}${text.includes('?') ? '&' : '?'}${name}=${ms}`, url);
}

/** Milliseconds of this parameter of the connection string. */
const timeIn = (url: string, name: string): number | undefined => {
  const [, ms] = new RegExp(`[?&]${name}=(\\d+)`, 'i').exec(url) ?? [];
  return ms === undefined ? undefined : Number(ms);
};

/** Connection string with a node in place of its hosts. */
function atNode(url: string, { address, port }: NodeAddress): string {
  return url.replace(/^([^:+]+)(?:\+discover)?:\/\/([^@/]*@)?[^/?]+/, `$1://$2${address}:${port}`);
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
