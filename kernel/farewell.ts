import { pause, turn } from './signal';

/** What a WebSocket of ours can do when it is left. */
export interface LeftSocket {
  readonly readyState: number;
  readonly CLOSED: number;
  once(event: 'close', gone: () => void): unknown;
  close(): void;
  resume(): void;
  terminate(): void;
}

/**
 * Closes a socket and reads on until the other side has closed it, too: what that had sent before arrives still, as
 * messages like any other. What has not answered after `within_ms` is cut off.
 */
export async function farewell(socket: LeftSocket, within_ms: number): Promise<void> {
  if (socket.readyState === socket.CLOSED) return;
  const gone = new AbortController();
  socket.once('close', () => gone.abort());
  socket.close();
  // The answer to a goodbye is never read from a socket that is paused.
  socket.resume();
  await pause(within_ms, gone.signal);
  // A process that was stopped for a while finds its timers due before it has read what came meanwhile.
  if (!gone.signal.aborted) await turn();
  socket.terminate();
}
