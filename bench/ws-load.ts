import { randomBytes } from 'node:crypto';
import { connect, type Socket } from 'node:net';

export interface Subscribers {
  close(): void;
}

const HEAD_END = Buffer.from('\r\n\r\n');

/**
 * Many WebSocket clients on one channel. Frames are cut by hand and not copied or decoded: at a thousand sockets a full
 * client would be the limit, not the server. `onText` sees each text frame of each socket, during the call alone.
 * Resolves when every subscription is confirmed.
 */
export async function subscribers(
  url: string,
  count: number,
  headers: Readonly<Record<string, string>>,
  channel: string,
  onText: (frame: Buffer) => void,
): Promise<Subscribers> {
  const sockets: Socket[] = [];
  for (let n = 0; n < count; n += 50) {
    const some = Array.from({ length: Math.min(50, count - n) }, () => subscriber(url, headers, channel, onText));
    sockets.push(...(await Promise.all(some)));
  }
  return { close: () => sockets.forEach((socket) => socket.destroy()) };
}

function subscriber(
  url: string,
  headers: Readonly<Record<string, string>>,
  channel: string,
  onText: (frame: Buffer) => void,
): Promise<Socket> {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port), noDelay: true });
  const lines = [
    'GET /v1/ws HTTP/1.1',
    'host: 127.0.0.1',
    'connection: Upgrade',
    'upgrade: websocket',
    'sec-websocket-version: 13',
    `sec-websocket-key: ${randomBytes(16).toString('base64')}`,
    ...Object.entries(headers).map(([name, value]) => `${name}: ${value}`),
  ];
  socket.write(`${lines.join('\r\n')}\r\n\r\n`);
  // The protocol wants a sign of life every 30 s.
  const alive = setInterval(() => socket.write(maskedText('{"type":"ping"}')), 10_000);
  return new Promise((subscribed, fail) => {
    let held: Buffer = Buffer.alloc(0);
    let upgraded = false;
    let ready = false;
    const take = (frame: Buffer) => {
      if (ready) onText(frame);
      else if (frame.includes('"type":"subscribed"')) {
        ready = true;
        subscribed(socket);
      } else if (frame.includes('"type":"error"')) fail(new Error(frame.toString()));
    };
    socket.on('data', (chunk: Buffer) => {
      held = held.length === 0 ? chunk : Buffer.concat([held, chunk]);
      if (!upgraded) {
        const end = held.indexOf(HEAD_END);
        if (end === -1) return;
        if (!held.subarray(0, 12).equals(Buffer.from('HTTP/1.1 101'))) {
          fail(new Error(held.toString()));
          return;
        }
        upgraded = true;
        held = held.subarray(end + HEAD_END.length);
        socket.write(maskedText(JSON.stringify({ type: 'subscribe', channel })));
      }
      held = frames(held, take);
    });
    socket.on('error', fail);
    socket.on('close', () => {
      clearInterval(alive);
      fail(new Error('the server closed a subscriber'));
    });
  });
}

/** Hands on whole text frames and returns what is left; servers do not mask. */
function frames(held: Buffer, take: (frame: Buffer) => void): Buffer {
  let at = 0;
  while (held.length - at >= 2) {
    const short = held[at + 1]! & 0x7f;
    const head = short === 126 ? 4 : short === 127 ? 10 : 2;
    if (held.length - at < head) break;
    const length =
      short === 126 ? held.readUInt16BE(at + 2) : short === 127 ? Number(held.readBigUInt64BE(at + 2)) : short;
    if (held.length - at < head + length) break;
    if ((held[at]! & 0x0f) === 1) take(held.subarray(at + head, at + head + length));
    at += head + length;
  }
  return at === 0 ? held : held.subarray(at);
}

/** A client's text frame, shorter than 64 KiB; a mask of zeros is a mask. */
function maskedText(text: string): Buffer {
  const body = Buffer.from(text);
  const head =
    body.length < 126
      ? Buffer.from([0x81, 0x80 | body.length])
      : Buffer.from([0x81, 0xfe, body.length >> 8, body.length & 0xff]);
  return Buffer.concat([head, Buffer.alloc(4), body]);
}
