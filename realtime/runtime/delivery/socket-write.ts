import type { Socket } from 'node:net';

/** A write that Node has begun; its class is not exported. */
interface WriteRequest {
  oncomplete?: (this: WriteRequest, status: number) => void;
  /** Keeps what the kernel has not taken yet from being collected. */
  held?: Buffer | readonly Buffer[];
  socket?: Socket;
  /** {@link UNUSED} unless a write under way holds the request. */
  getAsyncId(): number;
}

const UNUSED = -1;

/** The part of a TCP socket's handle that is used here. Each call returns 0, or the negative error number. */
interface Handle {
  /** Bytes of writes under way that the kernel has not taken. */
  writeQueueSize: number;
  writeBuffer(request: WriteRequest, bytes: Buffer): number;
  writev(request: WriteRequest, buffers: readonly Buffer[], all_buffers: true): number;
}

/** Node's classes, as its own first write to a TCP socket showed them; null until then, and where it shows none. */
let Request: (new () => WriteRequest) | null = null;
let TcpHandle: unknown = null;
/** The request of the next write; one that the kernel takes whole at once leaves nothing in it, so it serves again. */
let spare: WriteRequest | null = null;

const handleOf = (socket: Socket): Handle | null => (socket as Socket & { _handle?: Handle | null })._handle ?? null;

/** Bytes of the write under way that the kernel has not taken; falls while a large frame leaves slowly. */
export const kernelBacklog = (socket: Socket): number => handleOf(socket)?.writeQueueSize ?? 0;

/**
 * Writes to a socket past Node's stream, which costs as much again as the system call: most writes are taken whole by
 * the kernel, and then no request, no callback and no tick is needed. Node itself writes to a socket that is not TCP,
 * or has a write of Node's own waiting. True when the kernel took everything.
 */
export function write(socket: Socket, bytes: Buffer): boolean {
  const handle = direct(socket);
  if (handle === null) {
    if (spare === null) learn(socket);
    socket.write(bytes);
    return socket.writableLength === 0;
  }
  return written(socket, handle, handle.writeBuffer(spare!, bytes), bytes);
}

/** Writes any number of buffers in one system call; otherwise as {@link write}. */
export function writeAll(socket: Socket, buffers: readonly Buffer[]): boolean {
  if (buffers.length === 0) return true;
  const handle = direct(socket);
  if (handle !== null) return written(socket, handle, handle.writev(spare!, buffers, true), buffers);
  socket.cork();
  for (const bytes of buffers) socket.write(bytes);
  socket.uncork();
  return socket.writableLength === 0;
}

/** The handle, where it may be written to past the stream. */
function direct(socket: Socket): Handle | null {
  const handle = handleOf(socket);
  return spare !== null && handle !== null && handle.constructor === TcpHandle && socket.writableLength === 0
    ? handle
    : null;
}

function written(socket: Socket, handle: Handle, failed: number, held: Buffer | readonly Buffer[]): boolean {
  if (failed !== 0) {
    spare = new Request!();
    socket.destroy();
    return true;
  }
  if (handle.writeQueueSize === 0) {
    // A client that reads meanwhile lets the kernel take the rest at its second try: the request's end comes later,
    // and a request that is used twice ends the process.
    if (spare!.getAsyncId() !== UNUSED) spare = new Request!();
    return true;
  }
  spare!.held = held;
  spare!.socket = socket;
  spare!.oncomplete = completed;
  spare = new Request!();
  return false;
}

function completed(this: WriteRequest, status: number): void {
  if (status < 0) this.socket!.destroy();
}

/** Sees which classes Node uses for its next write to the socket. */
function learn(socket: Socket): void {
  const handle = handleOf(socket);
  if (handle === null || handle.constructor.name !== 'TCP') return;
  const { writeBuffer } = handle;
  handle.writeBuffer = function (request, bytes) {
    Reflect.deleteProperty(this, 'writeBuffer');
    Request = request.constructor as new () => WriteRequest;
    TcpHandle = this.constructor;
    spare = new Request();
    return writeBuffer.call(this, request, bytes);
  };
}
