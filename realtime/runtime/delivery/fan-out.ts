import type { Span } from '../../../engines/tracing/port';
import type { Channel, Gathering, Outgoing, Places, Subscription } from '../channel/channel';
import { LoopLoad } from './loop-load';
import type { Chunk } from '../session/send-queue';

/** Frames of this much or fewer messages are joined into one chunk. */
const CHUNK_BYTES = 128 * 1024;
const CHUNK_MESSAGES = 128;
/** After a flush a channel's frames wait this long for company, and this many times as long as the flush took. */
const GATHER_MS = 4;
const GATHER_TIMES = 6;
/**
 * Frames of stored messages wait once as long as the flush took while the loop is no busier than `spare`, since they
 * have had company in their projector's batch; the busier it is, the longer, and from `full` on like all others.
 */
const STORED = { times: 1, spare: 0.7, full: 0.9 } as const;
/** No frame waits for company longer. */
const GATHER_MOST_MS = 200;
/** Sockets are written in slices of about this long; between them the loop serves everybody else. */
const SLICE_MS = 1;
/** A channel that waited this long for its turn gets every second slice until it is done. */
const AGED_MS = 20;
/** Writes between two reads of the clock. */
const WRITES = 16;
/** Bounds of slices that measure a write's cost: enough writes, and no pause of the machine within. */
const MEASURED = { writes: 64, most_us: 100 } as const;
/** Waiting for sockets of this node, beyond which the tail had better wait. */
const SATURATED = { messages: 8_192, bytes: 16 * 1024 * 1024 } as const;

/**
 * From frames to sockets. A channel's first frame after a pause leaves at once; those that come while it is written,
 * and for a while after, are joined into one chunk: the more sockets a channel has, the longer, so that writing it
 * takes a seventh of the loop at most, however fast messages come; of stored messages more, while the loop has time.
 * Small channels are written before large ones, and a session that gets chunks of several is written once.
 */
export class FanOut {
  /** Channels with frames that wait for company. */
  private dirty: Channel[] = [];
  /** The largest first. */
  private readonly jobs: Outgoing[] = [];
  private sorted = true;
  private turns = 0;
  private immediate: NodeJS.Immediate | null = null;
  private timer: NodeJS.Timeout | null = null;
  private timer_at = Infinity;
  /** Cost of a write in microseconds; measured continuously, so that a loaded machine gathers longer. */
  private write_us = 3;
  private waiting_messages = 0;
  private waiting_bytes = 0;

  constructor(
    /** Puts a chunk into a session's queue; false when it did not. */
    private readonly offer: (subscription: Subscription, chunk: Chunk) => boolean,
    private readonly load: Pick<LoopLoad, 'at'> = new LoopLoad(),
  ) {}

  /** Adds a frame for the live subscribers of the channel; does nothing without any. */
  add(channel: Channel, bytes: Buffer, transient: boolean): void {
    if (channel.live.length === 0) return;
    const full = channel.gathering;
    if (full && (full.frames.length >= CHUNK_MESSAGES || full.bytes + bytes.length > CHUNK_BYTES)) this.seal(channel);
    if (channel.gathering === null) {
      const { frames: first, seq: before } = channel;
      const places = channel.forwarded?.places ?? null;
      channel.gathering = { frames: [], bytes: 0, first, before, places, transient: -1, stored: false, spans: null };
      if (!full) this.dirty.push(channel);
    }
    const { gathering } = channel;
    if (transient) gathering.transient = gathering.frames.length;
    else gathering.stored = true;
    gathering.frames.push(bytes);
    gathering.bytes += bytes.length;
    channel.frames += 1;
    this.waiting_messages += 1;
    this.waiting_bytes += bytes.length;
    this.schedule(channel.outgoing?.messages ? Infinity : dueOf(channel));
  }

  /** A span of the frame that was added last; it ends when the sessions have it. */
  trace({ gathering }: Channel, span: Span): void {
    if (gathering === null) span.end();
    else (gathering.spans ??= []).push(span);
  }

  /** The last seq that a subscription was given: messages of its channel may still wait to be handed out. */
  place({ state, seq, channel }: Subscription): number {
    if (state === 'replaying') return seq;
    return channel.gathering === null ? channel.seq : Math.max(channel.gathering.before, seq);
  }

  /** Like {@link place}, in the channels that are forwarded; null where none are. */
  places({ state, from, places, channel }: Subscription): Places | null {
    const { gathering, forwarded } = channel;
    if (forwarded === null || state === 'replaying') return places;
    if (gathering === null) return forwarded.places;
    return from > gathering.first ? places : gathering.places;
  }

  /** True while the backlog of writes is large enough that the tail should wait. */
  get saturated(): boolean {
    return this.waiting_messages > SATURATED.messages || this.waiting_bytes > SATURATED.bytes;
  }

  /** Hands everything that waits to the sockets now; for the node's end. */
  drain(): void {
    for (const channel of this.dirty) this.seal(channel);
    this.dirty = [];
    for (const job of this.jobs.splice(0)) {
      this.writeSome(job, Infinity);
      this.finish(job);
    }
  }

  /** Gives a channel's waiting frames to those who are live, each from the frame on with which it joined. */
  private seal(channel: Channel): void {
    const { gathering } = channel;
    if (gathering === null) return;
    channel.gathering = null;
    const job = this.job(channel, gathering);
    const chunks = new Chunks(channel.name, gathering);
    const { live } = channel;
    // From the end on: one that has to go leaves its place to one that was served already.
    for (let index = live.length - 1; index >= 0; index -= 1) {
      const subscription = live[index]!;
      const chunk = chunks.from(subscription);
      if (chunk === null || !this.offer(subscription, chunk)) continue;
      job.sessions[job.count] = subscription.session;
      job.count += 1;
    }
  }

  /** Adds a gathering to the outgoing writes of the channel. */
  private job(channel: Channel, { frames, bytes, spans }: Gathering): Outgoing {
    const none = { sessions: [], count: 0, done: 0, messages: 0, bytes: 0, since: 0, spans: null };
    const job = (channel.outgoing ??= { channel, ...none });
    if (job.messages === 0) {
      job.since = performance.now();
      this.jobs.push(job);
      this.sorted = false;
    }
    job.messages += frames.length;
    job.bytes += bytes;
    if (spans !== null) job.spans = job.spans === null ? spans : [...job.spans, ...spans];
    return job;
  }

  private schedule(due: number): void {
    if (this.immediate !== null) return;
    const wait = due - performance.now();
    if (this.jobs.length > 0 || wait <= 0.5) {
      this.immediate = setImmediate(this.turn);
    } else if (due < this.timer_at) {
      if (this.timer !== null) clearTimeout(this.timer);
      this.timer_at = due;
      this.timer = setTimeout(this.turn, wait);
    }
  }

  private readonly turn = (): void => {
    if (this.immediate !== null) clearImmediate(this.immediate);
    if (this.timer !== null) clearTimeout(this.timer);
    this.immediate = this.timer = null;
    this.timer_at = Infinity;
    this.sealDue();
    this.slice();
    let due = Infinity;
    for (const channel of this.dirty) due = Math.min(due, dueOf(channel));
    if (due < Infinity || this.jobs.length > 0) this.schedule(due);
  };

  /** Hands out what has waited long enough, of channels that were written. */
  private sealDue(): void {
    const now = performance.now();
    let kept = 0;
    for (const channel of this.dirty) {
      const waits = dueOf(channel) > now + 0.5 || (channel.outgoing !== null && channel.outgoing.messages > 0);
      if (waits) this.dirty[kept++] = channel;
      else this.seal(channel);
    }
    this.dirty.length = kept;
  }

  /** Writes for a while: the small ones first, or one that has waited too long. */
  private slice(): void {
    if (this.jobs.length === 0) return;
    if (!this.sorted) this.jobs.sort((a, b) => b.count - b.done - (a.count - a.done));
    this.sorted = true;
    const started = performance.now();
    const until = started + SLICE_MS;
    this.turns += 1;
    const aged = this.turns % 2 === 0 ? this.aged(until - AGED_MS) : null;
    let writes = 0;
    if (aged !== null) {
      writes += this.writeSome(aged, until);
      if (aged.done === aged.count) this.jobs.splice(this.jobs.indexOf(aged), 1);
    }
    const finished: Outgoing[] = aged !== null && aged.done === aged.count ? [aged] : [];
    while (this.jobs.length > 0 && (writes === 0 || performance.now() < until)) {
      const job = this.jobs.at(-1)!;
      writes += this.writeSome(job, until);
      if (job.done < job.count) break;
      finished.push(this.jobs.pop()!);
    }
    if (writes >= MEASURED.writes) {
      const took_us = ((performance.now() - started) * 1_000) / writes;
      this.write_us += (Math.min(took_us, MEASURED.most_us) - this.write_us) / 8;
    }
    for (const job of finished) this.finish(job);
  }

  /** The one that has waited longest, when that is too long. */
  private aged(since: number): Outgoing | null {
    let oldest: Outgoing | null = null;
    for (const job of this.jobs) if (job.since < (oldest?.since ?? since)) oldest = job;
    return oldest;
  }

  /** Returns how many sessions it has come by. */
  private writeSome(job: Outgoing, until: number): number {
    const { sessions, count, done } = job;
    let at = done;
    while (at < count) {
      sessions[at]!.pump();
      // Let go of at once: whoever leaves must not be held by a channel that is quiet from now on.
      sessions[at] = null;
      at += 1;
      if ((at - done) % WRITES === 0 && performance.now() > until) break;
    }
    job.done = at;
    return at - done;
  }

  /** The more a flush cost, the longer its channel gathers. */
  private finish(job: Outgoing): void {
    const { channel, spans } = job;
    const took_ms = (job.count * this.write_us) / 1_000;
    const now = performance.now();
    channel.due = now + gatherMs(took_ms, GATHER_TIMES);
    channel.stored_due = now + gatherMs(took_ms, storedTimes(this.load.at(now)));
    this.waiting_messages -= job.messages;
    this.waiting_bytes -= job.bytes;
    job.count = job.done = job.messages = job.bytes = 0;
    job.spans = null;
    if (channel.live.length === 0) channel.outgoing = null;
    for (const span of spans ?? []) span.end();
  }
}

/** When what gathers on the channel may leave. */
const dueOf = ({ gathering, due, stored_due }: Channel): number => (gathering?.stored ? stored_due : due);

const gatherMs = (took_ms: number, times: number): number =>
  Math.min(Math.max(GATHER_MS, times * took_ms), GATHER_MOST_MS);

/** By how busy the loop is, from 0 to 1. */
function storedTimes(load: number): number {
  const { times, spare, full } = STORED;
  const share = Math.min(1, Math.max(0, (load - spare) / (full - spare)));
  return times + share * (GATHER_TIMES - times);
}

/** A gathering as chunks: whole for earlier subscribers, and from the joining frame on for later ones. */
class Chunks {
  private readonly whole: Chunk;
  private readonly parts = new Map<number, Chunk>();

  constructor(
    private readonly channel: string,
    private readonly gathering: Gathering,
  ) {
    const { frames, before, transient } = gathering;
    const bytes = frames.length === 1 ? frames[0]! : Buffer.concat(frames, gathering.bytes);
    this.whole = { bytes, count: frames.length, channel, before, transient: transient >= 0 };
  }

  /** Null for a subscriber that joined after the gathering. */
  from({ from, seq }: Subscription): Chunk | null {
    const skipped = from - this.gathering.first;
    if (skipped <= 0) return this.whole;
    if (skipped >= this.whole.count) return null;
    let part = this.parts.get(skipped);
    if (!part) this.parts.set(skipped, (part = this.part(skipped, seq)));
    return part;
  }

  private part(skipped: number, before: number): Chunk {
    const { channel, gathering, whole } = this;
    const { frames, transient } = gathering;
    let start = 0;
    for (let index = 0; index < skipped; index += 1) start += frames[index]!.length;
    const bytes = whole.bytes.subarray(start);
    return { bytes, count: frames.length - skipped, channel, before, transient: transient >= skipped };
  }
}
