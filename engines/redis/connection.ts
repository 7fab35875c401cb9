import Redis, { type Command, type RedisOptions } from 'ioredis';
import type { Logger } from '../log/port';
import type { Metrics } from '../metrics/port';

/**
 * A command was rejected without being sent: no connection, or the server was silent and has not answered a ping since.
 */
export class RedisUnavailable extends Error {
  constructor() {
    super('Redis does not answer');
    this.name = 'RedisAway';
  }
}

export interface RedisLinkOptions {
  /** `redis://` or `rediss://`, with user, password and database number as usual. */
  url: string;
  /** For `CLIENT LIST`, logs and metrics: `commands`, `publisher`, `subscriber`. */
  name: string;
  log: Logger;
  metrics: Metrics;
  /** Longest time that any command waits for its answer. Default 100 ms. */
  command_timeout_ms?: number;
  /** Interval of pings on an idle link. Default 2 s. */
  ping_ms?: number;
  /** Time without an arrival despite pings after which a link is closed. Default 1 s. */
  silent_ms?: number;
}

/** Connection that reconnects by itself until it is closed. */
export interface RedisLink {
  readonly client: Redis;
  readonly name: string;
  /** Whether commands are sent; false while they would fail at once. */
  usable(): boolean;
  /**
   * Calls the listener after each (re)connection, when the server has loaded its data. Returns the unsubscribe
   * function.
   */
  onReady(listener: () => void): () => void;
  /** Calls the listener after each answered ping: the regular ones, and the one that ends a silence. */
  onAnswer(listener: () => void): () => void;
  /** Calls the listener when the connection is lost, and with it its subscriptions on the server. */
  onLost(listener: () => void): () => void;
  /** Settles on the first connection, or after `within_ms`, so that an unavailable server does not stop a start. */
  opened(within_ms: number): Promise<void>;
  close(): Promise<void>;
}

/** Commands that ioredis sends by itself before a connection is ready. */
const HANDSHAKE = new Set(['auth', 'select', 'client', 'info', 'hello', 'readonly', 'quit']);
const CONNECT_TIMEOUT_MS = 2_000;
const LONGEST_BACKOFF_MS = 2_000;

/**
 * A client whose commands are bounded: they end with an answer, a timeout, or at once while the link is down or
 * suspect. Commands are never queued and never sent twice, so that none takes effect long after its caller has
 * continued.
 */
class BoundedRedis extends Redis {
  /** Set while a silent server is probed. */
  suspect = false;
  onTimeout: () => void = () => undefined;

  override sendCommand(command: Command, stream?: Parameters<Redis['sendCommand']>[1]): unknown {
    // ioredis itself would send some commands (PUBLISH, SUBSCRIBE) on a connection that has not answered yet.
    const refused = this.status === 'ready' ? this.suspect && command.name !== 'ping' : !HANDSHAKE.has(command.name);
    if (refused) {
      command.reject(new RedisUnavailable());
      return command.promise;
    }
    // The caller handles the promise; this handler only detects a silent server.
    command.promise.catch((error: Error) => {
      if (error.message === 'Command timed out') this.onTimeout();
    });
    return super.sendCommand(command, stream);
  }
}

/**
 * Opens a link to Redis or Valkey. Reconnects for ever, with a jittered backoff of at most 2 s; detects a half-open
 * connection (open socket, no answers) by pings, on subscriber links as well, and closes it. Faults row 14.
 * @throws Error when the URL is not one of Redis
 */
export function connectRedis(options: RedisLinkOptions): RedisLink {
  const { name, log, command_timeout_ms = 100, ping_ms = 2_000, silent_ms = 1_000 } = options;
  if (!/^rediss?:\/\//.test(options.url)) throw new Error('redis.url: must begin with redis:// or rediss://');
  const settings: RedisOptions = {
    connectionName: `lumio-${name}`,
    disableClientInfo: true,
    enableOfflineQueue: false,
    enableReadyCheck: true,
    maxRetriesPerRequest: 0,
    autoResendUnfulfilledCommands: false,
    autoResubscribe: false,
    commandTimeout: command_timeout_ms,
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: 200,
    keepAlive: 5_000,
    noDelay: true,
    retryStrategy: (attempt) => Math.random() * Math.min(LONGEST_BACKOFF_MS, 50 * 2 ** Math.min(attempt, 10)) + 10,
  };
  const client = new BoundedRedis(options.url, settings);
  const connected = options.metrics.gauge('lumio_redis_connected', '1 while the link to Redis answers', ['link']);
  const reconnects = options.metrics.counter('lumio_redis_reconnects_total', 'Links to Redis made anew', ['link']);
  const ready = new Set<() => void>();
  const answers = new Set<() => void>();
  const lost = new Set<() => void>();
  let away_since: number | null = null;
  let first = true;
  let closed = false;
  let probing = false;
  connected.set(0, { link: name });

  client.on('ready', () => {
    client.suspect = false;
    connected.set(1, { link: name });
    if (!first) reconnects.inc(1, { link: name });
    if (away_since !== null) log.info({ link: name, away_ms: Date.now() - away_since }, 'Redis is back');
    first = false;
    away_since = null;
    for (const listener of [...ready]) listener();
  });
  client.on('close', () => {
    connected.set(0, { link: name });
    if (closed) return;
    if (away_since === null) {
      away_since = Date.now();
      log.warn({ link: name }, 'Redis is away; it is tried again until it answers');
    }
    for (const listener of [...lost]) listener();
  });
  client.on('error', (error: Error) => log.debug({ err: error, link: name }, 'the link to Redis failed'));

  /** Pings until something arrives; after `silent_ms` of silence the socket is destroyed, and the backoff begins. */
  async function probe(): Promise<void> {
    if (probing || closed || client.status !== 'ready') return;
    probing = true;
    const { stream } = client;
    const before = stream.bytesRead;
    const deadline = performance.now() + silent_ms;
    let alive = false;
    try {
      // Stops without a connection: pings then fail at once, and the loop would block the whole process.
      while (!alive && client.status === 'ready') {
        const answered = await client.ping().then(
          () => true,
          () => false,
        );
        // Late answers count, because a slow server is not lost.
        alive = answered || stream !== client.stream || stream.bytesRead > before;
        if (!alive && performance.now() >= deadline) {
          log.warn({ link: name, silent_ms }, 'the link to Redis is silent; it is made anew');
          stream.destroy();
          break;
        }
      }
    } finally {
      probing = false;
      client.suspect = false;
    }
    if (alive && !closed) for (const listener of [...answers]) listener();
  }
  client.onTimeout = () => {
    if (probing || closed) return;
    client.suspect = true;
    void probe();
  };
  const timer = setInterval(() => void probe(), ping_ms);
  timer.unref();

  const on = (listeners: Set<() => void>) => (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  return {
    client,
    name,
    usable: () => client.status === 'ready' && !client.suspect,
    onReady: on(ready),
    onAnswer: on(answers),
    onLost: on(lost),
    async opened(within_ms) {
      if (client.status === 'ready') return;
      await new Promise<void>((resolve) => {
        const late = setTimeout(resolve, within_ms);
        client.once('ready', () => {
          clearTimeout(late);
          resolve();
        });
      });
    },
    async close() {
      closed = true;
      clearInterval(timer);
      for (const listeners of [ready, answers, lost]) listeners.clear();
      client.disconnect();
    },
  };
}
