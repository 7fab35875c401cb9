import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** A TCP link to the test database that can go silent with its sockets left open; connections made afterwards work. */
export async function silenceableLink(url: string): Promise<{ url: string; silence(): void; close(): void }> {
  const target = new URL(url);
  const socket_dir = target.searchParams.get('host');
  const links = new Set<Socket>();
  const server: Server = createServer((near) => {
    const far = socket_dir ? connect(`${socket_dir}/.s.PGSQL.5432`) : connect(Number(target.port), target.hostname);
    near.pipe(far).pipe(near);
    for (const socket of [near, far]) {
      links.add(socket);
      socket.on('error', () => socket.destroy());
    }
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `postgresql://${target.username}@127.0.0.1:${port}${target.pathname}`,
    silence() {
      for (const socket of links) socket.unpipe().pause();
    },
    close() {
      server.close();
      for (const socket of links) socket.destroy();
    },
  };
}
