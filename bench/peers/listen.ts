import type { AddressInfo, Server } from 'node:net';

/** Part of Fastify that the peers use; each brings its own copy. */
export interface PeerApp {
  server: Server;
  listen(options: { host: string; port: number }): Promise<string>;
  close(): Promise<void>;
}

/** Serves on a free port, prints its address, and ends on SIGTERM. */
export async function serve(app: PeerApp): Promise<void> {
  await app.listen({ host: '127.0.0.1', port: 0 });
  const { port } = app.server.address() as AddressInfo;
  process.stdout.write(`peer ready at http://127.0.0.1:${port}\n`);
  process.once('SIGTERM', () => {
    app.close().then(
      () => process.exit(0),
      () => process.exit(1),
    );
  });
}
