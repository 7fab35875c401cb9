import { connect, createServer, type AddressInfo, type Server, type Socket } from 'node:net';

/** How a database is away: nothing passes and nothing is answered, or connections are closed and none is taken. */
export type Partition = 'silent' | 'refused';

export interface SilenceableLink {
  url: string;
  /** The sockets of now go silent and are left open; connections made afterwards work. */
  silence(): void;
  /** For the sockets of now and for those to come, until {@link mend}. */
  partition(how: Partition): void;
  /** What was sent over sockets that went silent arrives now, late, as after a real partition. */
  mend(): void;
  close(): void;
}

/** A TCP link to the test database that can go silent with its sockets left open, or be away altogether. */
export async function silenceableLink(url: string): Promise<SilenceableLink> {
  const target = new URL(url);
  const socket_dir = target.searchParams.get('host');
  const links = new Set<readonly [near: Socket, far: Socket]>();
  let away: Partition | null = null;
  const sockets = () => [...links].flat();
  const silence = () => {
    for (const socket of sockets()) socket.unpipe().pause();
  };
  const server: Server = createServer((near) => {
    if (away === 'refused') return void near.destroy();
    const far = socket_dir ? connect(`${socket_dir}/.s.PGSQL.5432`) : connect(Number(target.port), target.hostname);
    const link = [near, far] as const;
    links.add(link);
    for (const socket of link) socket.on('error', () => socket.destroy());
    near.once('close', () => far.once('close', () => links.delete(link)));
    if (away === null) near.pipe(far).pipe(near);
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const cut = () => {
    for (const socket of sockets()) socket.destroy();
  };
  return {
    url: `postgresql://${target.username}@127.0.0.1:${port}${target.pathname}`,
    silence,
    partition(how) {
      away = how;
      if (how === 'silent') silence();
      else cut();
    },
    mend() {
      away = null;
      for (const [near, far] of links) {
        if (near.destroyed || far.destroyed) [near, far].forEach((socket) => socket.destroy());
        else near.pipe(far).pipe(near);
      }
    },
    close() {
      server.close();
      cut();
    },
  };
}
