import { connect, createServer, type AddressInfo, type Socket } from 'node:net';

/** A TCP relay in front of a server, at a port that stays its own: its links can be cut, go silent, or be refused. */
export class Relay {
  port = 0;
  private readonly sockets = new Set<Socket>();
  private frozen = false;
  private readonly server = createServer((near) => this.link(near));

  constructor(
    private readonly target_host: string,
    private readonly target_port: number,
  ) {}

  get listening(): boolean {
    return this.server.listening;
  }

  /** Listens (again). */
  async up(): Promise<void> {
    await new Promise<void>((listening) => this.server.listen(this.port, '127.0.0.1', listening));
    this.port = (this.server.address() as AddressInfo).port;
  }

  /** Cuts every link and refuses new ones. */
  async down(): Promise<void> {
    const closed = new Promise<void>((done) => this.server.close(() => done()));
    this.cut();
    await closed;
  }

  /** Breaks every link at once; new ones are taken. */
  cut(): void {
    for (const socket of this.sockets) socket.destroy();
    this.sockets.clear();
  }

  /** The links there are carry nothing any more, and stay open; new ones work. */
  silence(): void {
    for (const socket of this.sockets) socket.unpipe().pause();
  }

  /** No link carries anything any more, new ones neither. */
  freeze(): void {
    this.frozen = true;
    this.silence();
  }

  private link(near: Socket): void {
    if (this.frozen) {
      this.sockets.add(near);
      near.on('error', () => near.destroy());
      near.on('close', () => this.sockets.delete(near));
      return;
    }
    const far = connect(this.target_port, this.target_host);
    near.pipe(far).pipe(near);
    const ends: [Socket, Socket][] = [
      [near, far],
      [far, near],
    ];
    for (const [socket, other] of ends) {
      this.sockets.add(socket);
      socket.setNoDelay(true);
      socket.on('error', () => socket.destroy());
      socket.on('close', () => {
        this.sockets.delete(socket);
        other.destroy();
      });
    }
  }
}
