import { join } from 'node:path';
import Redis from 'ioredis';
import { engineFolder, freePort, startEngine } from './process';
import type { ProxyLink } from './toxiproxy';

export interface RedisServer {
  readonly port: number;
  readonly url: string;
  /** Drops every key and compiled script. */
  flush(): Promise<void>;
  /** SIGSTOP: its sockets stay open, and nothing is answered. */
  pause(): void;
  resume(): void;
  /** SIGKILL and wait; what it held is gone. */
  kill(): Promise<void>;
  /** Starts it again on the same port. */
  start(): Promise<void>;
  stop(): Promise<void>;
}

/** A real redis-server on loopback, without persistence. */
export async function startRedis(): Promise<RedisServer> {
  const port = await freePort();
  const folder = engineFolder('redis');
  const url = `redis://127.0.0.1:${port}`;
  const engine = await startEngine({
    url,
    port,
    command: 'redis-server',
    args: ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder],
    log: join(folder, 'output.log'),
  });
  return {
    port,
    url,
    async flush() {
      const client = new Redis(url);
      await client.flushall();
      await client.script('FLUSH');
      client.disconnect();
    },
    pause: () => void process.kill(engine.pid, 'SIGSTOP'),
    resume: () => void process.kill(engine.pid, 'SIGCONT'),
    kill: () => engine.kill(),
    start: () => engine.restart(),
    stop: () => engine.kill(),
  };
}

/**
 * A link that can fall silent with its sockets open, or become slow; `heal` closes the connections that were swallowed.
 */
export interface Faults {
  blackhole(): Promise<void>;
  delay(ms: number): Promise<void>;
  heal(): Promise<void>;
}

export function faultsOf(link: ProxyLink): Faults {
  const ends: (() => Promise<void>)[] = [];
  const both = async (type: 'timeout' | 'latency', attributes: Record<string, number>) => {
    for (const stream of ['upstream', 'downstream'] as const) ends.push(await link.toxic(type, stream, attributes));
  };
  return {
    blackhole: () => both('timeout', { timeout: 0 }),
    delay: (ms) => both('latency', { latency: ms }),
    async heal() {
      for (const end of ends.splice(0)) await end();
    },
  };
}
