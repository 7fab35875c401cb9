import { type ChildProcess, spawn } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { connect } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import Redis from 'ioredis';

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

/** A real redis-server (Debian's `redis-server`) on loopback, without persistence, on a port below 32768. */
export async function startRedis(port: number): Promise<RedisServer> {
  const folder = mkdtempSync(join(tmpdir(), 'lumio-redis-'));
  let child: ChildProcess | undefined;
  let ended: Promise<unknown> = Promise.resolve();

  async function start(): Promise<void> {
    const args = ['--port', String(port), '--bind', '127.0.0.1', '--save', '', '--appendonly', 'no', '--dir', folder];
    let output = '';
    const started = spawn('redis-server', args, { stdio: ['ignore', 'pipe', 'pipe'] });
    started.stdout.on('data', (chunk: Buffer) => (output += chunk.toString()));
    started.stderr.on('data', (chunk: Buffer) => (output += chunk.toString()));
    let failure: Error | undefined;
    started.once('error', (error) => (failure = error));
    ended = new Promise((resolve) => started.once('close', resolve));
    child = started;
    const deadline = Date.now() + 20_000;
    while (!(await answers(port))) {
      if (failure) throw new Error(`redis-server does not start (apt-get install redis-server): ${failure.message}`);
      if (started.exitCode !== null || Date.now() > deadline)
        throw new Error(`redis-server does not start:\n${output}`);
      await new Promise((resolve) => setTimeout(resolve, 30));
    }
  }
  await start();
  const server: RedisServer = {
    port,
    url: `redis://127.0.0.1:${port}`,
    async flush() {
      const client = new Redis(server.url);
      await client.flushall();
      await client.script('FLUSH');
      client.disconnect();
    },
    pause: () => void child!.kill('SIGSTOP'),
    resume: () => void child!.kill('SIGCONT'),
    async kill() {
      child!.kill('SIGKILL');
      await ended;
    },
    start,
    async stop() {
      await server.kill();
      rmSync(folder, { recursive: true, force: true });
    },
  };
  return server;
}

function answers(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1', () => socket.write('PING\r\n'));
    socket.once('data', () => {
      socket.destroy();
      resolve(true);
    });
    socket.once('error', () => resolve(false));
  });
}
