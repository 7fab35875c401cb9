import { connect, type Socket } from 'node:net';

export interface HttpReply {
  status: number;
  body: Buffer;
}

interface Lane {
  socket: Socket;
  held: Buffer;
  resolve?: (reply: HttpReply) => void;
  reject?: (error: Error) => void;
}

/**
 * Keep-alive connections with one request each at a time. Requests are bytes made beforehand and answers are cut out by
 * `content-length`: a full client would cost the load generator more than the servers under test spend.
 */
export class HttpLoad {
  private readonly free: Lane[] = [];
  private readonly waiting: ((lane: Lane) => void)[] = [];
  private readonly lanes: Lane[] = [];

  private constructor() {}

  static async open(url: string, connections: number): Promise<HttpLoad> {
    const { hostname, port } = new URL(url);
    const load = new HttpLoad();
    await Promise.all(
      Array.from({ length: connections }, async () => {
        const socket = connect({ host: hostname, port: Number(port), noDelay: true });
        await new Promise<void>((resolve, reject) => socket.once('connect', resolve).once('error', reject));
        const lane: Lane = { socket, held: Buffer.alloc(0) };
        socket.on('data', (chunk: Buffer) => take(lane, chunk));
        const broken = () => lane.reject?.(new Error('the server closed the connection'));
        socket.on('close', broken).on('error', broken);
        load.lanes.push(lane);
        load.free.push(lane);
      }),
    );
    return load;
  }

  /** Sends on the next free connection; waits for one when all are busy. */
  async request(bytes: Buffer): Promise<HttpReply> {
    const lane = this.free.pop() ?? (await new Promise<Lane>((resolve) => this.waiting.push(resolve)));
    try {
      return await new Promise<HttpReply>((resolve, reject) => {
        lane.resolve = resolve;
        lane.reject = reject;
        if (lane.socket.destroyed) reject(new Error('the server closed the connection'));
        else lane.socket.write(bytes);
      });
    } finally {
      const next = this.waiting.shift();
      if (next) next(lane);
      else this.free.push(lane);
    }
  }

  close(): void {
    for (const { socket } of this.lanes) socket.destroy();
  }
}

const HEAD_END = Buffer.from('\r\n\r\n');

function take(lane: Lane, chunk: Buffer): void {
  lane.held = lane.held.length === 0 ? chunk : Buffer.concat([lane.held, chunk]);
  const end = lane.held.indexOf(HEAD_END);
  if (end === -1) return;
  const head = lane.held.toString('latin1', 0, end);
  const length = /\r\ncontent-length: *(\d+)/i.exec(head);
  if (!length) {
    lane.reject?.(new Error(`an answer without content-length:\n${head}`));
    return;
  }
  const start = end + HEAD_END.length;
  const whole = start + Number(length[1]);
  if (lane.held.length < whole) return;
  const body = lane.held.subarray(start, whole);
  lane.held = lane.held.subarray(whole);
  lane.resolve?.({ status: Number(head.slice(9, 12)), body });
}

/** A request as bytes. */
export function requestBytes(
  method: 'GET' | 'POST',
  path: string,
  headers: Readonly<Record<string, string>>,
  body?: Buffer | string,
): Buffer {
  const bytes = body === undefined ? Buffer.alloc(0) : Buffer.from(body);
  const lines = [`${method} ${path} HTTP/1.1`, 'host: 127.0.0.1'];
  for (const [name, value] of Object.entries(headers)) lines.push(`${name}: ${value}`);
  if (body !== undefined) lines.push('content-type: application/json', `content-length: ${bytes.length}`);
  return Buffer.concat([Buffer.from(`${lines.join('\r\n')}\r\n\r\n`), bytes]);
}
