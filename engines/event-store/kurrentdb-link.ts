import { KurrentDBClient } from '@kurrent/kurrentdb-client';
import { retry, type RetryOptions, type Try } from '../../kernel/retry';
import { EngineAway } from '../../kernel/failures';
import { isPassingAtKurrentdb, leaderOf, type NodeAddress } from './kurrentdb-errors';

/** The oldest server with appends over several streams; no release under the name EventStoreDB has them. */
export const NEEDED_VERSION = '25.1';
const APPEND_SESSION = { path: '/kurrentdb.protocol.v2.streams.StreamsService/AppendSession' };

/**
 * What the client knows of the server it found, and its way to close; the client keeps both to itself in its types
 * only.
 */
interface Internals {
  capabilities: Promise<{ serverVersion: string; supports(method: { path: string }): boolean }>;
  getChannel(): Promise<{ close(): void }>;
}

/**
 * The connection to one KurrentDB: a client that is thrown away and made anew after a failure that it may not recover
 * from by itself (a failed discovery, or a deadline while it asks for the server's features, stays cached in it for
 * ever).
 */
export class KurrentLink {
  private current: KurrentDBClient | undefined;
  private readonly holds = new Map<KurrentDBClient, number>();
  private closed = false;
  private readonly url: string;
  /** Where the next client goes instead of looking for a node: one that does not lead has named it. */
  private leader: NodeAddress | undefined;
  /** `host:port,…` for messages: the credentials stay out of them. */
  readonly hosts: string;

  /** @throws Error when the connection string is not one. */
  constructor(url: string) {
    // The client prints a deprecation to the console for the old scheme, which means the same.
    this.url = withDeadline(withoutDiscovery(url.replace(/^esdb(?=[:+])/, 'kurrentdb')));
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
    // The half of the client that reads sends a password as it stands in the URL, %40 and all; told like this, both
    // halves send the same.
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

  /**
   * This client failed: the next one asked for is new, unless another caller has replaced it already. When a node named
   * the leader it goes there with all its parts (each of the client's halves keeps a connection of its own); after any
   * other failure, or when the leader named is the node that was asked, it begins with the connection string again.
   */
  renew(failed: KurrentDBClient, error: unknown): void {
    if (this.current !== failed) return;
    const named = leaderOf(error);
    this.leader = named?.address === this.leader?.address && named?.port === this.leader?.port ? undefined : named;
    this.current = undefined;
    if (!this.holds.has(failed)) void dispose(failed);
  }

  /**
   * Runs `work` on the client of the moment, which stays open for its length: a call that begins on a client that
   * someone else just closed is never answered at all.
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
   * Does the work until it succeeds; what passes is tried again with another client.
   * @throws EngineAway when nothing but failures that pass came in the time or the tries; at once whatever will not
   * pass
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
      throw isPassingAtKurrentdb(error) ? new EngineAway('kurrentdb', error) : error;
    }
  }

  /**
   * A live subscription runs on this client: it must not be closed under it. Closing a client ends its subscriptions
   * without a word.
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
 * The client tries several hosts without `+discover` as well; with it the client reads only while the first of them
 * is up.
 */
const withoutDiscovery = (url: string): string => url.replace(/^(\w+)\+discover(:\/\/(?:[^@/]*@)?[^/?]*,)/, '$1$2');

/** The client's own default of 10 s is long for a link that has gone silent. */
function withDeadline(url: string): string {
  if (/[?&]default_?deadline=/i.test(url)) return url;
  return `${url}${url.includes('?') ? '&' : '?'}defaultDeadline=5000`;
}

/** The same connection string with one node in place of its hosts. */
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
