import type { Socket } from 'node:net';
import type { Caller } from '../../../access/authentication/caller';

export interface ReadingBounds {
  /** Time in which a reader must take {@link stalled_bytes} of an answer, or its connection is closed. */
  stalled_ms: number;
  stalled_bytes: number;
  /** Most bytes of large answers that wait for their readers: of one account, user or network, and of all. */
  share_bytes: number;
  all_bytes: number;
}

interface Waiting {
  share: string;
  bytes: number;
  socket: Socket;
}

export interface AnswerRoom {
  /**
   * Whether an answer fits. For one that is not `refusable`, readers are cut until it does, those of its own share
   * first.
   */
  ensureCapacity(caller: Caller, bytes: number, refusable: boolean): boolean;
  /** Counts an answer that waits for its reader. Returns its release, which may be called again. */
  enter(caller: Caller, bytes: number, socket: Socket): () => void;
}

export function createAnswerRoom({ stalled_ms, stalled_bytes, share_bytes, all_bytes }: ReadingBounds): AnswerRoom {
  const waiting = new Set<Waiting>();
  const shares = new Map<string, number>();
  const readers = new Map<Socket, { progress: Progress; answers: number; timer: NodeJS.Timeout }>();
  const look_ms = stalled_ms / 10;
  let all = 0;

  const heldBy = (share: string): number => shares.get(share) ?? 0;

  function leave(one: Waiting): void {
    if (!waiting.delete(one)) return;
    all -= one.bytes;
    const share = heldBy(one.share) - one.bytes;
    if (share === 0) shares.delete(one.share);
    else shares.set(one.share, share);
    const reader = readers.get(one.socket)!;
    reader.answers -= 1;
    if (reader.answers > 0) return;
    clearInterval(reader.timer);
    readers.delete(one.socket);
  }

  function cut(socket: Socket): void {
    for (const one of waiting) if (one.socket === socket) leave(one);
    socket.destroy();
  }

  /** Watches the progress of a connection. */
  function watch(socket: Socket): void {
    const watched = readers.get(socket);
    if (watched) {
      watched.answers += 1;
      return;
    }
    const progress = new Progress(socket, stalled_bytes, look_ms);
    const timer = setInterval(() => {
      if (progress.measure() >= stalled_ms) cut(socket);
    }, look_ms).unref();
    readers.set(socket, { progress, answers: 1, timer });
  }

  function largestShare(): string {
    let largest: [share: string, bytes: number] = ['', 0];
    for (const share of shares) if (share[1] > largest[1]) largest = share;
    return largest[0];
  }

  /** The reader of this share whose last progress is furthest back, the oldest of several. */
  function slowestOf(share: string): Socket {
    let slowest: { socket: Socket; stalled_ms: number } | null = null;
    for (const one of waiting) {
      if (one.share !== share) continue;
      const stalled_ms = readers.get(one.socket)!.progress.measure();
      if (slowest === null || stalled_ms > slowest.stalled_ms) slowest = { socket: one.socket, stalled_ms };
    }
    return slowest!.socket;
  }

  return {
    ensureCapacity(caller, bytes, refusable) {
      const share = shareOf(caller);
      if (heldBy(share) + bytes <= share_bytes && all + bytes <= all_bytes) return true;
      if (refusable) return false;
      while (heldBy(share) > 0 && heldBy(share) + bytes > share_bytes) cut(slowestOf(share));
      while (all > 0 && all + bytes > all_bytes) cut(slowestOf(largestShare()));
      return true;
    },
    enter(caller, bytes, socket) {
      const one = { share: shareOf(caller), bytes, socket };
      waiting.add(one);
      all += bytes;
      shares.set(one.share, heldBy(one.share) + bytes);
      watch(socket);
      return () => leave(one);
    },
  };
}

/** Measures the time since the reader of a connection began to take its last `bytes`. */
class Progress {
  private since_ms = 0;
  private measured_at = performance.now();
  private from: number;

  constructor(
    private readonly socket: Socket,
    private readonly bytes: number,
    private readonly look_ms: number,
  ) {
    this.from = bytesTaken(socket);
  }

  measure(): number {
    const now = performance.now();
    const taken = bytesTaken(this.socket);
    // Bounded, because a stalled process could not write either.
    this.since_ms += Math.min(now - this.measured_at, 2 * this.look_ms);
    this.measured_at = now;
    if (taken - this.from >= this.bytes) {
      this.from = taken;
      this.since_ms = 0;
    }
    return this.since_ms;
  }
}

/** Bytes that the operating system has accepted for the reader. */
const bytesTaken = ({ bytesWritten, writableLength }: Socket): number => bytesWritten - writableLength;

/** Share of all keys and tokens of an account, of all sessions of a user, or of an anonymous network. */
function shareOf({ kind, client, user_id, account_id, rate_bucket, rate_limit }: Caller): string {
  if (rate_limit === null) return rate_bucket;
  if (kind === 'jwt' && client === undefined && user_id !== null) return `user:${user_id}`;
  return account_id === null ? rate_bucket : `account:${account_id}`;
}
