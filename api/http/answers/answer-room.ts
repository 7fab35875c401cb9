import type { Socket } from 'node:net';
import type { Caller } from '../../../access/authentication/caller';

export interface ReadingBounds {
  /** Time by which a reader may fall behind the slowest pace before its connection is cut. */
  stalled_ms: number;
  /** Slowest pace at which large answers are read, as a running average. */
  bytes_per_second: number;
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
   * Cuts readers of the largest share while the room is full. Returns the reason to refuse an answer; null for one that
   * is not `refusable`, for which readers are cut also when the caller's own share is the largest.
   */
  makeRoom(caller: Caller, bytes: number, refusable: boolean): 'share' | 'all' | null;
  /** Counts an answer that waits for its reader. Returns its release, which may be called again. */
  enter(caller: Caller, bytes: number, socket: Socket): () => void;
}

export function createAnswerRoom({ stalled_ms, bytes_per_second, share_bytes, all_bytes }: ReadingBounds): AnswerRoom {
  const waiting = new Set<Waiting>();
  const shares = new Map<string, number>();
  const paces = new Map<Socket, { pace: Pace; answers: number; timer: NodeJS.Timeout }>();
  const look_ms = stalled_ms / 10;
  let all = 0;

  function leave(one: Waiting): void {
    if (!waiting.delete(one)) return;
    all -= one.bytes;
    const share = shares.get(one.share)! - one.bytes;
    if (share === 0) shares.delete(one.share);
    else shares.set(one.share, share);
    const watched = paces.get(one.socket)!;
    watched.answers -= 1;
    if (watched.answers > 0) return;
    clearInterval(watched.timer);
    paces.delete(one.socket);
  }

  function cut(socket: Socket): void {
    for (const one of waiting) if (one.socket === socket) leave(one);
    socket.destroy();
  }

  /** Watches the pace of a connection; its answers share the pace, because they wait behind each other. */
  function watch(socket: Socket): void {
    const watched = paces.get(socket);
    if (watched) {
      watched.answers += 1;
      return;
    }
    const pace = new Pace(socket, bytes_per_second, look_ms);
    const timer = setInterval(() => {
      if (pace.measure() >= stalled_ms) cut(socket);
    }, look_ms).unref();
    paces.set(socket, { pace, answers: 1, timer });
  }

  function largestShare(): [share: string, bytes: number] {
    let largest: [string, number] = ['', 0];
    for (const share of shares) if (share[1] > largest[1]) largest = share;
    return largest;
  }

  /** The reader of this share that is furthest behind its pace, the oldest of several. */
  function slowestOf(share: string): Socket {
    let slowest: { socket: Socket; behind_ms: number } | null = null;
    for (const one of waiting) {
      if (one.share !== share) continue;
      const behind_ms = paces.get(one.socket)!.pace.measure();
      if (slowest === null || behind_ms > slowest.behind_ms) slowest = { socket: one.socket, behind_ms };
    }
    return slowest!.socket;
  }

  return {
    makeRoom(caller, bytes, refusable) {
      const own = (shares.get(shareOf(caller)) ?? 0) + bytes;
      if (refusable && caller.rate_limit !== null && own > share_bytes) return 'share';
      while (all + bytes > all_bytes) {
        const [share, held] = largestShare();
        if (refusable && own > held) return 'all';
        if (held === 0) break;
        cut(slowestOf(share));
      }
      return null;
    },
    enter(caller, bytes, socket) {
      const one = { share: shareOf(caller), bytes, socket };
      waiting.add(one);
      all += bytes;
      shares.set(one.share, (shares.get(one.share) ?? 0) + bytes);
      watch(socket);
      return () => leave(one);
    },
  };
}

/** Measures how far the reader of a connection is behind the slowest pace. Time ahead of the pace is not saved up. */
class Pace {
  private behind_ms = 0;
  private measured_at = performance.now();
  private read: number;

  constructor(
    private readonly socket: Socket,
    private readonly bytes_per_second: number,
    private readonly look_ms: number,
  ) {
    this.read = bytesTaken(socket);
  }

  measure(): number {
    const now = performance.now();
    const read = bytesTaken(this.socket);
    // Bounded, because a stalled process could not write either.
    const passed_ms = Math.min(now - this.measured_at, 2 * this.look_ms);
    this.behind_ms = Math.max(0, this.behind_ms + passed_ms - ((read - this.read) / this.bytes_per_second) * 1000);
    this.measured_at = now;
    this.read = read;
    return this.behind_ms;
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
