import type { Span } from '../../engines/tracing/port';
import type { Channel, Subscription } from './channel';
import type { Chunk } from './send-queue';
import type { Session } from './session';

/** Frames of this much or fewer messages are joined into one chunk. */
const CHUNK_BYTES = 128 * 1024;
const CHUNK_MESSAGES = 128;
/** Frames wait at least this long for company after a flush, so that many leave in one write. */
const COALESCE_MS = 4;
/** Sessions are written in slices of about this long; between them the loop serves everybody else. */
const SLICE_MS = 4;
interface Job {
  members: readonly Subscription[];
  chunk: Chunk;
  /** End when the job's sessions have it. */
  spans: Span[] | null;
}

/**
 * From frames to sockets: frames of one channel that come within a few milliseconds are joined into one chunk, and
 * every session is written once for all the chunks that it gets.
 */
export class FanOut {
  /** Channels with frames that wait for company. */
  private dirty: Channel[] = [];
  private jobs: Job[] = [];
  private flushing = false;
  private scheduled = false;
  private next_flush_at = 0;

  /** `offer` puts a chunk into a session's queue; false when it did not, or must not be written now. */
  constructor(private readonly offer: (subscription: Subscription, chunk: Chunk) => boolean) {}

  /** One more frame for those who are live on the channel; nothing while nobody is. */
  add(channel: Channel, bytes: Buffer, transient: boolean): void {
    if (channel.live().length === 0) return;
    const waiting = channel.gathering;
    if (waiting && (waiting.frames.length >= CHUNK_MESSAGES || waiting.bytes + bytes.length > CHUNK_BYTES))
      this.seal(channel);
    if (channel.gathering === null) {
      this.dirty.push(channel);
      channel.gathering = { frames: [], bytes: 0, before: channel.seq, transient: false, spans: null };
    }
    const { gathering } = channel;
    gathering.transient ||= transient;
    gathering.frames.push(bytes);
    gathering.bytes += bytes.length;
    this.schedule();
  }

  /** A span of the frame that was added last; it ends when the sessions have it. */
  trace({ gathering }: Channel, span: Span): void {
    if (gathering === null) span.end();
    else (gathering.spans ??= []).push(span);
  }

  /** Turns a channel's waiting frames into a job for those who are live now; who joins later is not meant. */
  seal(channel: Channel): void {
    const { gathering, name } = channel;
    if (gathering === null) return;
    channel.gathering = null;
    const { frames, before, transient, spans } = gathering;
    const count = frames.length;
    const bytes = count === 1 ? frames[0]! : Buffer.concat(frames, gathering.bytes);
    this.jobs.push({ members: channel.live(), chunk: { bytes, count, channel: name, before, transient }, spans });
    this.schedule();
  }

  /** The last seq that a subscription was given: messages of its channel may still wait to be handed out. */
  place(subscription: Subscription): number {
    const { state, seq, channel } = subscription;
    if (state === 'replaying') return seq;
    const waiting = this.jobs.find(
      ({ chunk, members }) => chunk.channel === channel.name && members.includes(subscription),
    );
    if (waiting) return waiting.chunk.before;
    return channel.gathering?.before ?? channel.seq;
  }

  /** True while so much is waiting to be written that the tail had better wait. */
  get saturated(): boolean {
    return this.jobs.length > 64;
  }

  /** Hands everything that waits to the sessions now; for the node's end. */
  drain(channels: Iterable<Channel>): void {
    for (const channel of channels) this.seal(channel);
    const touched: Session[] = [];
    for (const { members, chunk } of this.jobs) {
      for (const subscription of members) {
        if (subscription.state === 'live' && this.offer(subscription, chunk)) touched.push(subscription.session);
      }
    }
    this.jobs = [];
    for (const session of touched) session.pump();
  }

  private schedule(): void {
    if (this.scheduled || this.flushing) return;
    this.scheduled = true;
    const wait = this.next_flush_at - performance.now();
    if (wait > 0.5) setTimeout(this.flush, wait);
    else setImmediate(this.flush);
  }

  private readonly flush = (): void => {
    this.scheduled = false;
    this.flushing = true;
    const dirty = this.dirty;
    this.dirty = [];
    for (const channel of dirty) this.seal(channel);
    const jobs = this.jobs;
    this.jobs = [];
    this.write(jobs, performance.now());
  };

  /** Gives every job to its members, channel by channel, then lets each touched session write once. */
  private write(jobs: Job[], started: number): void {
    const touched: Session[] = [];
    for (const { members, chunk } of jobs) {
      for (const subscription of members) {
        if (subscription.state === 'live' && this.offer(subscription, chunk)) touched.push(subscription.session);
      }
    }
    let at = 0;
    const slice = (): void => {
      const until = performance.now() + SLICE_MS;
      while (at < touched.length) {
        touched[at++]!.pump();
        if ((at & 31) === 0 && performance.now() > until) {
          setImmediate(slice);
          return;
        }
      }
      for (const { spans } of jobs) if (spans !== null) for (const span of spans) span.end();
      this.flushing = false;
      const now = performance.now();
      // Under load a third of the loop stays free for reading: the longer a flush took, the longer frames gather.
      this.next_flush_at = now + Math.max(COALESCE_MS, Math.min((now - started) / 2, 50));
      if (this.dirty.length > 0 || this.jobs.length > 0) this.schedule();
    };
    slice();
  }
}
