import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { type Engine, engineFolder, freePort, program, startEngine } from './process';

const CADDYFILE = join(__dirname, '../../../deploy/Caddyfile');

/** Ports on loopback of each role's nodes, in the order in which they are tried. */
export type Nodes = Record<'ingest' | 'api' | 'realtime', readonly number[]>;

/**
 * A real Caddy under `deploy/Caddyfile`, in which only names that docker compose knows, and the policy that would
 * choose by chance, are replaced.
 */
export async function startCaddy(nodes: Nodes): Promise<Engine> {
  const folder = engineFolder('caddy');
  const port = await freePort();
  let places = 0;
  const here = readFileSync(CADDYFILE, 'utf8')
    .replace(/dynamic a (\w+) 7070 \{[^}]*\}/g, (_whole, name: keyof Nodes) => {
      places += 1;
      return `to ${nodes[name].map((node) => `127.0.0.1:${node}`).join(' ')}`;
    })
    .replaceAll('lb_policy least_conn', 'lb_policy first')
    .replace(':8080 {', `http://127.0.0.1:${port} {\n\tbind 127.0.0.1`);
  if (places !== 3) throw new Error(`deploy/Caddyfile: ${places} upstreams, 3 are expected`);
  writeFileSync(join(folder, 'Caddyfile'), here);
  return startEngine({
    url: `http://127.0.0.1:${port}`,
    port,
    command: program('caddy', 'caddy'),
    args: ['run', '--config', join(folder, 'Caddyfile'), '--adapter', 'caddyfile'],
    env: { XDG_DATA_HOME: folder, XDG_CONFIG_HOME: folder },
    log: join(folder, 'log'),
  });
}
