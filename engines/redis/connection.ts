import Redis, { type Command, type RedisOptions } from 'ioredis';
import type { Logger } from '../log/port';
import type { Metrics } from '../metrics/port';

/**
 * Refused without being sent: there is no connection, or the server was silent a moment ago and has not answered a ping
 * since.
 */
export class RedisAway extends Error {
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
  /** How often an idle link is asked whether it lives. Default 2 s. */
  ping_ms?: number;
  /** A link on which nothing arrives for this long, though asked, is thrown away. Default 1 s. */
  silent_ms?: number;
}

/** One connection that is kept, by itself, for as long as the process wants it. */
export interface RedisLink {
  readonly client: Redis;
  readonly name: string;
  /** False while commands would fail at once. */
  usable(): boolean;
  /** After each (re)connection, when the server has loaded its data. Returns a function that ends it. */
  onReady(listener: () => void): () => void;
  /** After each ping that the server has answered: the regular ones, and the one that ends a silence. */
  onAnswer(listener: () => void): () => void;
  /** The connection is gone; whatever the server kept for it (subscriptions) too. */
  onLost(listener: () => void): () => void;
  /** Settles when the first connection stands, or after `within_ms`: a server that is away does not stop a start. */
  opened(within_ms: number): Promise<void>;
  close(): Promise<void>;
}

/** What ioredis sends by itself before it calls a connection ready. */
const HANDSHAKE = new Set(['auth', 'select', 'client', 'info', 'hello', 'readonly', 'quit']);
const CONNECT_TIMEOUT_MS = 2_000;
const LONGEST_BACKOFF_MS = 2_000;

/**
 * A client whose commands end: with an answer, a timeout, or at once while the link is down or under suspicion. Nothing
 * is queued while it is away and nothing is sent a second time, so that a command never takes effect long after its
 * caller has gone on.
 */
class BoundedRedis extends Redis {
  /** Set while a silent server is being asked whether it lives. */
  suspect = false;
  onTimeout: () => void = () => undefined;

  override sendCommand(command: Command, stream?: Parameters<Redis['sendCommand']>[1]): unknown {
    // ioredis itself would let some commands (PUBLISH, SUBSCRIBE) through on a connection that has not answered yet.
    const refused = this.status === 'ready' ? this.suspect && command.name !== 'ping' : !HANDSHAKE.has(command.name);
    if (refused) {
      command.reject(new RedisAway());
      return command.promise;
    }
    // The caller has the promise and handles it; this look at it only notices a server that has fallen silent.
    command.promise.catch((error: Error) => {
      if (error.message === 'Command timed out') this.onTimeout();
    });
    return super.sendCommand(command, stream);
  }
}

/**
 * Opens a link to Redis or Valkey. A lost connection is made again with a jittered backoff of at most 2 s, for ever; a
 * half-open one (the socket stands, nothing answers) is found by pings, on subscriber links as well, and thrown away.
 * Faults row 14.
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

  /** Asks until something arrives; after `silent_ms` of silence the socket is destroyed, and the backoff begins. */
  async function probe(): Promise<void> {
    if (probing || closed || client.status !== 'ready') return;
    probing = true;
    const { stream } = client;
    const before = stream.bytesRead;
    const deadline = performance.now() + silent_ms;
    let alive = false;
    try {
      // Without a connection pings fail at once: asking on would hold up the whole process.
      while (!alive && client.status === 'ready') {
        const answered = await client.ping().then(
          () => true,
          () => false,
        );
        // Late answers count: a server that is slow is not away.
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
