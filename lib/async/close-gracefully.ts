import { pause, yieldToEventLoop } from './signal';

/** Part of a WebSocket that closing it needs. */
export interface ClosableSocket {
  readonly readyState: number;
  readonly CLOSED: number;
  once(event: 'close', gone: () => void): unknown;
  on(event: 'message', heard: () => void): unknown;
  close(): void;
  pause(): void;
  resume(): void;
  terminate(): void;
}

/** Pause between two checks for room in the buffer. */
const LOOK_MS = 20;

/**
 * Closes a socket and reads on until the other side has closed it, too: what that had sent before arrives still, as
 * messages like any other. What has not answered after `within_ms` is cut off.
 *
 * @param full whether so much of what arrived waits that no more should be read; the time until there is room again
 *   is none that the other side takes
 */
export async function closeGracefully(
  socket: ClosableSocket,
  within_ms: number,
  full: () => boolean = () => false,
): Promise<void> {
  if (socket.readyState === socket.CLOSED) return;
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  socket.on('message', () => full() && socket.pause());
  socket.close();
  let left_ms = within_ms;
  while (left_ms > 0 && !gone.signal.aborted) {
    const reads = !full();
    // The answer to a goodbye is never read from a socket that is paused.
    if (reads) socket.resume();
    else socket.pause();
    const from = performance.now();
    await pause(Math.min(left_ms, LOOK_MS), gone.signal);
    if (reads) left_ms -= performance.now() - from;
  }
  // A process that was stopped for a while finds its timers due before it has read what came meanwhile.
  if (!gone.signal.aborted) await yieldToEventLoop();
  socket.terminate();
}
