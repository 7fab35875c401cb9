import type { Command } from 'commander';
import { servingAt } from '../engines/data-folder';
import { readSettings } from '../bin/read-settings';

/** Wildcard addresses, which a server can listen on but a client cannot call. */
const ANY_ADDRESS: ReadonlySet<string> = new Set(['0.0.0.0', '[::]']);
const bracketed = (host: string) => (host.includes(':') ? `[${host}]` : host);

/**
 * `lumio health`: queries the server that runs on the data folder, whatever its port; otherwise the address of the
 * settings. Exit code 0 when healthy or degraded. For container health checks.
 */
export function register(program: Command): void {
  program
    .command('health')
    .description('ask the running server how it is')
    .action(async () => {
      const { host, port, data_dir } = readSettings();
      const url = new URL('/v1/health', servingAt(data_dir) ?? `http://${bracketed(host)}:${port}`);
      if (ANY_ADDRESS.has(url.hostname)) url.hostname = '127.0.0.1';
      const response = await fetch(url, { signal: AbortSignal.timeout(2500) }).catch((error: unknown) => {
        throw new Error(`nothing answers at ${url.href}`, { cause: error });
      });
      const { data } = (await response.json()) as { data: { status: string } };
      process.stdout.write(`${data.status}\n`);
      process.exitCode = response.ok ? 0 : 1;
    });
}
