import type { Settings } from '../../kernel/settings/settings';

/** Error with the name of the setting for an occupied port; undefined for any other failure. */
export function portInUse(error: unknown, { port }: Pick<Settings, 'port'>): Error | undefined {
  const { code, address, port: taken } = error as { code?: string; address?: string; port?: number };
  if (code !== 'EADDRINUSE') return undefined;
  const name = taken === port ? 'LUMIO_PORT' : 'LUMIO_METRICS__PORT';
  return new Error(`${address}:${taken} is in use by another program: stop it, or set ${name} to another port`, {
    cause: error,
  });
}
