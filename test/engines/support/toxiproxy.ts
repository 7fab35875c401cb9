import { join } from 'node:path';
import { type Engine, engineFolder, freePort, program, startEngine } from './process';

export interface Toxiproxy extends Engine {
  /** A link from a free (or the given) port to a port of an engine. */
  link(target_port: number, port?: number): Promise<ProxyLink>;
}

export interface ProxyLink {
  port: number;
  /** Adds a fault; the function returned takes it off. `timeout` with 0 is a link that stays open and silent. */
  toxic(
    type: 'latency' | 'bandwidth' | 'slow_close' | 'timeout' | 'reset_peer' | 'slicer' | 'limit_data',
    stream: 'upstream' | 'downstream',
    attributes: Readonly<Record<string, number>>,
  ): Promise<() => Promise<void>>;
  /** Takes off every fault, also `down`. */
  heal(): Promise<void>;
  /** Cuts every connection and refuses new ones, until `up`. */
  down(): Promise<void>;
  up(): Promise<void>;
}

/** The fault proxy on loopback. */
export async function startToxiproxy(port?: number): Promise<Toxiproxy> {
  const at = port ?? (await freePort());
  const log = join(engineFolder('toxiproxy'), 'output.log');
  const engine = await startEngine({
    url: `http://127.0.0.1:${at}`,
    port: at,
    command: program('toxiproxy', 'toxiproxy'),
    args: ['-host', '127.0.0.1', '-port', String(at)],
    log,
  });
  const ask = async (method: string, path: string, body?: object) => {
    const answer = await fetch(`${engine.url}${path}`, { method, ...(body && { body: JSON.stringify(body) }) });
    if (!answer.ok) throw new Error(`toxiproxy ${method} ${path}: ${answer.status} ${await answer.text()}`);
  };
  let made = 0;
  const link = async (target_port: number, listen_port?: number): Promise<ProxyLink> => {
    const near = listen_port ?? (await freePort());
    const name = `link${(made += 1)}`;
    await ask('POST', '/proxies', {
      name,
      listen: `127.0.0.1:${near}`,
      upstream: `127.0.0.1:${target_port}`,
      enabled: true,
    });
    const toxics = new Set<string>();
    const remove = async (toxic: string) => {
      if (toxics.delete(toxic)) await ask('DELETE', `/proxies/${name}/toxics/${toxic}`);
    };
    return {
      port: near,
      async toxic(type, stream, attributes) {
        const toxic = `${type}${(made += 1)}`;
        await ask('POST', `/proxies/${name}/toxics`, { name: toxic, type, stream, attributes });
        toxics.add(toxic);
        return () => remove(toxic);
      },
      async heal() {
        for (const toxic of [...toxics]) await remove(toxic);
        await ask('POST', `/proxies/${name}`, { enabled: true });
      },
      down: () => ask('POST', `/proxies/${name}`, { enabled: false }),
      up: () => ask('POST', `/proxies/${name}`, { enabled: true }),
    };
  };
  return Object.defineProperties(engine as Toxiproxy, { link: { value: link } });
}
