import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

/** Protocol of a server's clients. */
export interface Dialect {
  /** Path and headers of the upgrade of client number `n`. */
  upgrade(n: number): { path: string; headers?: Readonly<Record<string, string>> };
  /** Sent after the upgrade. */
  hello: readonly string[];
  /** Text in the frame that confirms the subscription; null when the protocol has no such frame. */
  ready: string | null;
  /** Text in the frame that refuses the subscription. */
  refused?: string;
  /** Sign of life that the protocol requires; once in 20 s. */
  alive?: string;
  /** Receives this client's frames instead of the common listener. */
  onFrame?: (frame: Buffer) => void;
  /** The frame that requests a sign of life, and the answer. */
  ping?: readonly [asked: string, answer: string];
}

/** Lumio's clients of one channel. */
export const lumioClients = (channel: string) => ({
  hello: [JSON.stringify({ type: 'subscribe', channel })],
  ready: '"type":"subscribed"',
  refused: '"type":"error"',
  alive: '{"type":"ping"}',
});

export interface Clients {
  readonly count: number;
  /** Sends a text frame from one client. */
  send(n: number, text: string): void;
  /** Stops reading. */
  pause(): void;
  close(): void;
}

const ALIVE_MS = 20_000;
const HEAD_END = Buffer.from('\r\n\r\n');
/** Read buffer of all sockets, valid until the callback returns. */
const READ = Buffer.allocUnsafe(256 * 1024);

/**
 * Opens many WebSocket clients. Frames are parsed by hand and not copied or decoded: at a thousand sockets a full
 * client would be the limit, not the server. `onFrame` receives each data frame of each socket once it is ready, valid
 * during the call alone. Resolves when all are ready.
 */
export async function clients(
  url: string,
  count: number,
  dialect: Dialect | ((n: number) => Dialect),
  onFrame: (frame: Buffer) => void,
  parallel = 50,
): Promise<Clients> {
  const sockets: Socket[] = [];
  const of = typeof dialect === 'function' ? dialect : () => dialect;
  for (let n = 0; n < count; n += parallel) {
    const length = Math.min(parallel, count - n);
    const some = Array.from({ length }, (_, i) => client(url, n + i, of(n + i), of(n + i).onFrame ?? onFrame));
    sockets.push(...(await Promise.all(some)));
  }
  let next = 0;
  const { alive: sign } = of(0);
  // A few at a time, to avoid a burst.
  const alive = setInterval(() => {
    if (sign === undefined) return clearInterval(alive);
    for (let n = 0; n < count / 200; n += 1) sockets[(next = (next + 1) % count)]!.write(maskedText(sign));
  }, ALIVE_MS / 200);
  return {
    count,
    send: (n, text) => void sockets[n]!.write(maskedText(text)),
    pause: () => sockets.forEach((socket) => socket.pause()),
    close() {
      clearInterval(alive);
      for (const socket of sockets) socket.destroy();
    },
  };
}

/** Opens clients on one channel of Lumio, each with these headers. */
export const subscribers = (
  url: string,
  count: number,
  headers: Readonly<Record<string, string>>,
  channel: string,
  onText: (frame: Buffer) => void,
): Promise<Clients> =>
  clients(url, count, { ...lumioClients(channel), upgrade: () => ({ path: '/v1/ws', headers }) }, onText);

function client(url: string, n: number, dialect: Dialect, onFrame: (frame: Buffer) => void): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const { path, headers = {} } = dialect.upgrade(n);
  return new Promise((ready, fail) => {
    let held: Buffer | null = null;
    let upgraded = false;
    let on_channel = false;
    const take = (frame: Buffer) => {
      if (on_channel) {
        if (frame.length < 8 && dialect.ping?.[0] === frame.toString()) socket.write(maskedText(dialect.ping[1]));
        else onFrame(frame);
      } else if (dialect.ready === null || frame.includes(dialect.ready)) {
        on_channel = true;
        ready(socket);
      } else if (dialect.refused !== undefined && frame.includes(dialect.refused)) {
        fail(new Error(frame.toString()));
      }
    };
    const read = (length: number): boolean => {
      let bytes = READ.subarray(0, length);
      if (held !== null) bytes = Buffer.concat([held, bytes]);
      if (!upgraded) {
        const end = bytes.indexOf(HEAD_END);
        if (end === -1) {
          held = Buffer.from(bytes);
          return true;
        }
        if (!bytes.subarray(0, 12).equals(Buffer.from('HTTP/1.1 101'))) fail(new Error(bytes.toString()));
        upgraded = true;
        bytes = bytes.subarray(end + HEAD_END.length);
        for (const text of dialect.hello) socket.write(maskedText(text));
        if (dialect.ready === null) {
          on_channel = true;
          ready(socket);
        }
      }
      const left = frames(bytes, take);
      held = left.length === 0 ? null : Buffer.from(left);
      return true;
    };
    const onread = { buffer: READ, callback: read };
    const socket = connect({ host: hostname, port: Number(port), noDelay: true, onread });
    const lines = [
      `GET ${path} HTTP/1.1`,
      'host: 127.0.0.1',
      'connection: Upgrade',
      'upgrade: websocket',
      'sec-websocket-version: 13',
      `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
      ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
    ];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    socket.on('error', fail);
    socket.on('close', () => fail(new Error('the server closed a subscriber')));
  });
}

/** Passes whole data frames to `take` and returns the rest; servers do not mask. */
function frames(held: Buffer, take: (frame: Buffer) => void): Buffer {
  let at = 0;
  while (held.length - at >= 2) {
    const short = held[at + 1]! & 0x7f;
    const head = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (held.length - at < head) break;
    const length =
      short === 126 ? held.readUInt16BE(at + 2) : short === 127 ? Number(held.readBigUInt64BE(at + 2)) : short;
    if (held.length - at < head + length) break;
    if ((held[at]! & 0x0f) <= 2) take(held.subarray(at + head, at + head + length));
    at += head + length;
  }
  return at === 0 ? held : held.subarray(at);
}

/** Encodes a client's text frame, shorter than 64 KiB; a mask of zeros is valid. */
function maskedText(text: string): Buffer {
  const body = Buffer.from(text);
  const head =
    body.length < 126
      ? Buffer.from([0x81, 0x80 | body.length])
      : Buffer.from([0x81, 0xfe, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(4), body]);
}
