import { spawn } from 'node:child_process';
import { existsSync } from 'node:fs';
import { homedir } from 'node:os';
import { join } from 'node:path';

/** A TCP link through toxiproxy that can be broken on purpose. */
export interface FaultyLink {
  readonly port: number;
  /** The sockets stay open and nothing passes, either way, until `heal`; that closes the links that were swallowed. */
  blackhole(): Promise<void>;
  /** Every byte comes this much later. */
  delay(ms: number): Promise<void>;
  heal(): Promise<void>;
}

export interface Toxiproxy {
  link(port: number, to_port: number): Promise<FaultyLink>;
  stop(): Promise<void>;
}

const PROGRAM = join(process.env.LUMIO_ENGINES_DIR ?? join(homedir(), '.cache/lumio-engines'), 'toxiproxy/toxiproxy');

/** A toxiproxy server on loopback; `api_port` and the links' ports below 32768. */
export async function startToxiproxy(api_port: number): Promise<Toxiproxy> {
  if (!existsSync(PROGRAM)) throw new Error(`${PROGRAM} is not there: run npm run test:engines, which installs it`);
  const child = spawn(PROGRAM, ['-host', '127.0.0.1', '-port', String(api_port)], { stdio: 'ignore' });
  const ended = new Promise((resolve) => child.once('exit', resolve));
  const api = `http://127.0.0.1:${api_port}`;
  const call = async (method: string, path: string, body?: object) => {
    const response = await fetch(api + path, { method, ...(body && { body: JSON.stringify(body) }) });
    if (!response.ok) throw new Error(`toxiproxy ${method} ${path}: ${response.status} ${await response.text()}`);
  };
  const deadline = Date.now() + 20_000;
  for (;;) {
    const up = await fetch(`${api}/version`).then(
      (response) => response.ok,
      () => false,
    );
    if (up) break;
    if (child.exitCode !== null || Date.now() > deadline) throw new Error('toxiproxy does not start');
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    async link(port, to_port) {
      const name = `link-${port}`;
      await call('POST', '/proxies', {
        name,
        listen: `127.0.0.1:${port}`,
        upstream: `127.0.0.1:${to_port}`,
        enabled: true,
      });
      let toxics: string[] = [];
      const add = async (type: string, attributes: object) => {
        for (const stream of ['upstream', 'downstream']) {
          const toxic = `${type}-${stream}`;
          await call('POST', `/proxies/${name}/toxics`, { name: toxic, type, stream, attributes });
          toxics.push(toxic);
        }
      };
      return {
        port,
        blackhole: () => add('timeout', { timeout: 0 }),
        delay: (ms) => add('latency', { latency: ms }),
        async heal() {
          for (const toxic of toxics) await call('DELETE', `/proxies/${name}/toxics/${toxic}`);
          toxics = [];
        },
      };
    },
    async stop() {
      child.kill('SIGKILL');
      await ended;
    },
  };
}
