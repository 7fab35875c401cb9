import type { Command } from 'commander';
import { readSettings } from '../bin/read-settings';

/**
 * `lumio health`: asks the running server of these settings; exit code 0 when it is healthy or degraded. For container
 * health checks.
 */
export function register(program: Command): void {
  program
    .command('health')
    .description('ask the running server how it is')
    .action(async () => {
      const { host, port } = readSettings();
      const address = host === '0.0.0.0' || host === '::' ? '127.0.0.1' : host;
      const url = `http://${address}:${port}/v1/health`;
      const response = await fetch(url, { signal: AbortSignal.timeout(2500) }).catch((error: unknown) => {
        throw new Error(`nothing answers at ${url}`, { cause: error });
      });
      const { data } = (await response.json()) as { data: { status: string } };
      process.stdout.write(`${data.status}\n`);
      process.exitCode = response.ok ? 0 : 1;
    });
}
