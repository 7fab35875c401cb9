import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Redis from 'ioredis';
import { disown, own } from './disposable';
import { until } from './dose';
import { signal } from './signals';
import { freePort } from './toxiproxy';

/** A Redis of our own that may be killed, stopped and emptied. */
export interface RedisServer {
  readonly port: number;
  kill(): Promise<void>;
  start(): Promise<void>;
  pause(): void;
  resume(): void;
  flush(): Promise<void>;
  dispose(): Promise<void>;
}

/** Needs `redis-server` (Debian package of that name) on the path. */
export async function startRedis(): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-faults-redis-'));
  const port = await freePort();
  let child: ChildProcess;
  const withClient = async <T>(work: (client: Redis) => Promise<T>): Promise<T> => {
    const client = new Redis({ port, host: '127.0.0.1', lazyConnect: true, retryStrategy: () => null });
    client.on('error', () => undefined); // shows in the command
    try {
      await client.connect();
      return await work(client);
    } finally {
      client.disconnect();
    }
  };
  const start = async () => {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
    child = spawn('redis-server', args, { stdio: 'ignore' });
    const failed = new Promise<never>((_, reject) => child.once('error', reject));
    failed.catch(() => undefined); // raced below
    await Promise.race([failed, until(() => withClient(async (client) => (await client.ping()) === 'PONG'), 'redis')]);
    own(child.pid!);
  };
  const kill = async () => {
    const ended = new Promise((done) => child.once('exit', done));
    if (child.exitCode !== null || child.signalCode !== null) return;
    signal(child.pid!, 'SIGKILL');
    await ended;
    disown(child.pid!);
  };
  await start();
  return {
    port,
    kill,
    start,
    pause: () => signal(child.pid!, 'SIGSTOP'),
    resume: () => signal(child.pid!, 'SIGCONT'),
    flush: () => withClient(async (client) => void (await client.flushall())),
    async dispose() {
      await kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
