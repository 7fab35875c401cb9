import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { METRICS_PORT } from '../../kernel/settings/settings';

export interface MetricsListener {
  url: string;
  close(): Promise<void>;
}

/**
 * Serves `GET /metrics` (text exposition format 0.0.4) on a listener of its own, apart from the public origin. Port 0
 * is any free one; the default is {@link METRICS_PORT}, or any free port when that is in use. Source: spec doc2 §4.2,
 * Health and metrics.
 * @throws Error `EADDRINUSE` when a given port is in use
 */
export async function listenMetrics(options: {
  host: string;
  port?: number | undefined;
  render(): Promise<string>;
}): Promise<MetricsListener> {
  const server = createServer((request, response) => {
    const known = request.url?.split('?')[0] === '/metrics';
    if (!known || (request.method !== 'GET' && request.method !== 'HEAD')) {
      response.writeHead(known ? 405 : 404, { 'content-type': 'text/plain; charset=utf-8' }).end();
      return;
    }
    options.render().then(
      (text) => {
        response.writeHead(200, { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' });
        response.end(request.method === 'HEAD' ? undefined : text);
      },
      () =>
        response
          .writeHead(500, { 'content-type': 'text/plain; charset=utf-8' })
          .end('metrics could not be collected\n'),
    );
  });
  const listen = (asked: number) =>
    new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(asked, options.host, () => {
        server.off('error', reject);
        resolve();
      });
    });
  await listen(options.port ?? METRICS_PORT).catch((error: NodeJS.ErrnoException) => {
    if (options.port !== undefined || error.code !== 'EADDRINUSE') throw error;
    return listen(0);
  });
  const { port } = server.address() as AddressInfo;
  const host = options.host.includes(':') ? `[${options.host}]` : options.host;
  return {
    url: `http://${host}:${port}/metrics`,
    close: () =>
      new Promise((resolve, reject) => {
        server.close((error) => (error ? reject(error) : resolve()));
        server.closeAllConnections();
      }),
  };
}
