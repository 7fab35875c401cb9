import { connect, type Socket } from 'node:net';
import { PATIENCE_MS } from './patience';

const KEY = 'dGhlIHNhbXBsZSBub25jZQ==';

/** A frame from the server. */
export interface ServerFrame {
  opcode: number;
  payload: Buffer;
}

/** The request that opens a WebSocket, with further header lines. */
export const upgradeHead = (path: string, lines: readonly string[] = []): string =>
  [
    `GET ${path} HTTP/1.1`,
    'Host: localhost',
    'Upgrade: websocket',
    'Connection: Upgrade',
    'Sec-WebSocket-Version: 13',
    `Sec-WebSocket-Key: ${KEY}`,
    ...lines,
    '\r\n',
  ].join('\r\n');

export interface FrameMake {
  /** 1 text, 2 binary, 0 continuation, 8 close, 9 ping, 10 pong. */
  opcode?: number;
  fin?: boolean;
  /** Reserved bits, 0 to 7. */
  reserved?: number;
  masked?: boolean;
  /** The length that the head claims, when it is not the payload's. */
  claimed?: bigint;
}

/** A client's frame, right or wrong. */
export function clientFrame(payload: string | Buffer, make: FrameMake = {}): Buffer {
  const { opcode = 1, fin = true, reserved = 0, masked = true, claimed } = make;
  const data = Buffer.from(payload);
  const length = claimed ?? BigInt(data.length);
  const first = (fin ? 0x80 : 0) | (reserved << 4) | opcode;
  const mask_bit = masked ? 0x80 : 0;
  const head = Buffer.alloc(length < 126n ? 2 : length < 65_536n ? 4 : 10);
  head[0] = first;
  head[1] = mask_bit | (head.length === 2 ? Number(length) : head.length === 4 ? 126 : 127);
  if (head.length === 4) head.writeUInt16BE(Number(length), 2);
  if (head.length === 10) head.writeBigUInt64BE(length, 2);
  if (!masked) return Buffer.concat([head, data]);
  const mask = Buffer.from([0x12, 0x34, 0x56, 0x78]);
  return Buffer.concat([head, mask, data.map((byte, at) => byte ^ mask[at % 4]!)]);
}

/** A WebSocket client that says whatever the test wants, byte for byte. */
export class RawSocket {
  readonly frames: ServerFrame[] = [];
  /** What the server answered to the upgrade. */
  head = '';
  ended = false;
  private held = Buffer.alloc(0);
  private readonly watchers = new Set<() => void>();

  private constructor(readonly socket: Socket) {
    socket.on('error', () => undefined);
    socket.on('data', (chunk: Buffer) => {
      this.held = Buffer.concat([this.held, chunk]);
      this.take();
    });
    socket.on('close', () => {
      this.ended = true;
      this.changed();
    });
  }

  /** Connected to this `ws:` address; `first` goes out with the request, before its answer. */
  static async open(url: string, lines: readonly string[] = [], first: Buffer = Buffer.alloc(0)): Promise<RawSocket> {
    const { hostname, port, pathname, search } = new URL(url);
    const raw = new RawSocket(connect({ host: hostname, port: Number(port), noDelay: true }));
    raw.write(Buffer.concat([Buffer.from(upgradeHead(pathname + search, lines)), first]));
    await raw.until(() => raw.head !== '', 'the answer to the upgrade');
    return raw;
  }

  write(bytes: Buffer): void {
    if (!this.socket.destroyed) this.socket.write(bytes);
  }

  /** The texts that came, parsed. */
  get messages(): { type: string; code?: string }[] {
    return this.frames
      .filter(({ opcode }) => opcode === 1)
      .map(({ payload }) => JSON.parse(payload.toString()) as { type: string; code?: string });
  }

  /** The code of the server's close frame; null without one, or with one that says none. */
  get close_code(): number | null {
    const close = this.frames.find(({ opcode }) => opcode === 8);
    return close === undefined || close.payload.length < 2 ? null : close.payload.readUInt16BE(0);
  }

  async until(condition: () => boolean, what: string, ms = PATIENCE_MS): Promise<void> {
    if (condition()) return;
    await new Promise<void>((resolve, reject) => {
      const watch = () => {
        if (!condition() && !this.ended) return;
        clearTimeout(timer);
        this.watchers.delete(watch);
        if (condition()) resolve();
        else reject(new Error(`the connection ended before ${what}; head: ${this.head}`));
      };
      const timer = setTimeout(() => {
        this.watchers.delete(watch);
        reject(new Error(`waited in vain for ${what}; ${this.frames.length} frames came`));
      }, ms);
      this.watchers.add(watch);
      watch();
    });
  }

  destroy(): void {
    this.socket.destroy();
  }

  private changed(): void {
    for (const watcher of [...this.watchers]) watcher();
  }

  private take(): void {
    if (this.head === '') {
      const end = this.held.indexOf('\r\n\r\n');
      if (end < 0) return;
      this.head = this.held.subarray(0, end).toString('latin1');
      this.held = this.held.subarray(end + 4);
    }
    for (let size = this.frame(); size > 0; size = this.frame()) this.held = this.held.subarray(size);
    this.changed();
  }

  /** Takes the first frame that is there whole; answers its bytes, 0 when there is none. */
  private frame(): number {
    const { held } = this;
    if (held.length < 2) return 0;
    const short = held[1]! & 0x7f;
    const start = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (held.length < start) return 0;
    const length = short === 126 ? held.readUInt16BE(2) : short === 127 ? Number(held.readBigUInt64BE(2)) : short;
    if (held.length < start + length) return 0;
    this.frames.push({ opcode: held[0]! & 0x0f, payload: Buffer.from(held.subarray(start, start + length)) });
    return start + length;
  }
}
