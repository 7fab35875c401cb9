import { spawn } from 'node:child_process';
import { createServer } from 'node:net';
import { homedir } from 'node:os';
import { join } from 'node:path';
import { disown, own } from './disposable';
import { until } from './dose';
import { signal } from './signals';

/** Where outside programs are; scripts/engines/install.mjs and faults.mjs put them there. */
export const ENGINES = process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines');

type ToxicType = 'latency' | 'bandwidth' | 'slow_close' | 'timeout' | 'reset_peer' | 'slicer' | 'limit_data';

/**
 * A TCP link to one engine that can be made slow, silent or broken. `downstream` is the engine's answers, `upstream`
 * what is sent to it.
 */
export interface Link {
  readonly port: number;
  /** Refuses connections and cuts those that stand. */
  cut(): Promise<void>;
  /** Accepts again; every toxic is taken off. */
  mend(): Promise<void>;
  add(type: ToxicType, stream: 'upstream' | 'downstream', attributes: Record<string, number>): Promise<void>;
  /** Takes one kind of trouble off, in both directions. */
  remove(type: ToxicType): Promise<void>;
  /** Half-open: sockets stand, nothing passes in either direction, until {@link mend}. */
  silence(): Promise<void>;
}

export interface Toxiproxy {
  link(upstream: string): Promise<Link>;
  stop(): Promise<void>;
}

/** One Toxiproxy process on loopback, driven through its HTTP API. */
export async function startToxiproxy(): Promise<Toxiproxy> {
  const port = await freePort();
  const child = spawn(join(ENGINES, 'toxiproxy/toxiproxy'), ['-host', '127.0.0.1', '-port', String(port)], {
    stdio: 'ignore',
  });
  const failed = new Promise<never>((_, reject) => child.once('error', reject));
  failed.catch(() => undefined); // raced below
  const ended = new Promise<void>((done) => child.once('exit', () => done()));
  const base = `http://127.0.0.1:${port}`;
  const call = async (method: string, path: string, body?: object): Promise<void> => {
    const response = await fetch(base + path, { method, body: body && JSON.stringify(body) });
    if (!response.ok) throw new Error(`toxiproxy ${method} ${path}: ${response.status} ${await response.text()}`);
    await response.text();
  };
  await Promise.race([failed, until(() => call('GET', '/version').then(() => true), 'toxiproxy')]);
  own(child.pid!);
  let links = 0;
  return {
    async link(upstream) {
      const name = `link-${(links += 1)}`;
      const listen = await freePort();
      await call('POST', '/proxies', { name, listen: `127.0.0.1:${listen}`, upstream, enabled: true });
      const toxics = new Set<string>();
      const add: Link['add'] = async (type, stream, attributes) => {
        const toxic = `${type}-${stream}`;
        await call('POST', `/proxies/${name}/toxics`, { name: toxic, type, stream, toxicity: 1, attributes });
        toxics.add(toxic);
      };
      const take = async (toxic: string) => {
        toxics.delete(toxic);
        await call('DELETE', `/proxies/${name}/toxics/${toxic}`);
      };
      return {
        port: listen,
        cut: () => call('POST', `/proxies/${name}`, { enabled: false }),
        async mend() {
          for (const toxic of [...toxics]) await take(toxic);
          await call('POST', `/proxies/${name}`, { enabled: true });
        },
        add,
        async remove(type) {
          for (const toxic of [...toxics]) if (toxic.startsWith(`${type}-`)) await take(toxic);
        },
        async silence() {
          await add('timeout', 'upstream', { timeout: 0 });
          await add('timeout', 'downstream', { timeout: 0 });
        },
      };
    },
    async stop() {
      signal(child.pid!, 'SIGKILL');
      await ended;
      disown(child.pid!);
    },
  };
}

/**
 * A port that is free now, below the range that outgoing connections take theirs from: nobody takes it while its engine
 * is down.
 */
export async function freePort(): Promise<number> {
  for (let tries = 0; tries < 200; tries += 1) {
    const port = 20_000 + Math.floor(Math.random() * 12_000);
    const free = await new Promise<boolean>((done) => {
      const server = createServer();
      server.once('error', () => done(false));
      server.listen(port, '127.0.0.1', () => server.close(() => done(true)));
    });
    if (free) return port;
  }
  throw new Error('no free port below 32768');
}
