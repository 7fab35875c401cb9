import {
  BACKWARDS,
  END,
  StreamNotFoundError,
  WrongExpectedVersionError,
  type KurrentDBClient,
} from '@kurrent/kurrentdb-client';
import type { Try } from '../../../lib/async/retry';
import { withTimeout } from '../../../lib/async/signal';
import type { Logger } from '../../log/port';
import { InvalidEvent } from '../checks';
import { type Claim, isClaim, type PlannedAppend } from './claims';
import { formatPosition, toEvent } from './events';
import { isRefusedContent, reason } from './errors';
import type { KurrentLink } from './link';
import { RevisionConflict, type AppendResult, type Expected, type Position } from '../port';

export interface KurrentAppendsOptions {
  link: KurrentLink;
  log: Logger | undefined;
  /** Milliseconds for which an append whose outcome is unknown is read back and sent again. */
  retry_for_ms: number;
}

/** The queue of appends with 'any' to one stream, and the revision that the last of them left. */
interface Line {
  tail: Promise<unknown>;
  head: number | undefined;
}

/** Sends appends until their outcome is known; see {@link PlannedAppend} for why repeating one is harmless. */
export class KurrentAppends {
  private readonly lines = new Map<string, Line>();
  /** Whether the position in the server's answer is the last event's; the first append checks it. */
  private answered_position: 'unseen' | 'exact' | 'other' = 'unseen';

  constructor(private readonly options: KurrentAppendsOptions) {}

  /**
   * @throws RevisionConflict
   * @throws InvalidEvent when an event id belongs to another append, or the server refuses the events for their size or
   * names
   */
  async append(plan: PlannedAppend): Promise<AppendResult> {
    return plan.any.length === 0 ? this.send(plan) : this.inLine(plan);
  }

  /**
   * Serialises appends with 'any' to one stream, because of concurrent ones all but one would conflict.
   */
  private inLine(plan: PlannedAppend): Promise<AppendResult> {
    const streams = plan.any.map((index) => plan.encoded.writes[index]!.stream);
    const lines = streams.map((stream) => {
      const line = this.lines.get(stream) ?? { tail: Promise.resolve(), head: undefined };
      this.lines.set(stream, line);
      return line;
    });
    const sent = Promise.all(lines.map((line) => line.tail)).then(() => this.send(plan));
    const lines_moved = sent.then(
      ({ revisions }) => lines.forEach((line, n) => (line.head = Math.max(revisions[streams[n]!]!, line.head ?? -1))),
      () => lines.forEach((line) => (line.head = undefined)),
    );
    lines.forEach((line, n) => {
      const tail = lines_moved.then(() => {
        if (line.tail === tail) this.lines.delete(streams[n]!);
      });
      line.tail = tail;
    });
    return sent;
  }

  private async send(plan: PlannedAppend): Promise<AppendResult> {
    const { link, log, retry_for_ms } = this.options;
    const onFailure = (error: unknown, failures: number) =>
      log?.warn({ failures, reason: reason(error) }, 'an append got no answer, asking after it');
    try {
      const times = { first_ms: 30, most_ms: 1000, within_ms: retry_for_ms };
      return await link.persist((attempt) => this.sendOnce(plan, attempt), { ...times, onFailure });
    } catch (error) {
      throw isRefusedContent(error) ? refused(plan, error) : error;
    }
  }

  /** Tries once with the present revisions: another append may have changed a stream since the last try. */
  private async sendOnce(plan: PlannedAppend, { number, left_ms }: Try): Promise<AppendResult> {
    const late_at = performance.now() + left_ms;
    // A failed try may have been stored after all; the claims ensure that only one try can be.
    const stored =
      number > 1 ? await this.findAny(plan, number === 2 ? plan.claims : plan.claims.slice(-1)) : undefined;
    if (stored) return stored;
    let expected = await this.resolve(plan);
    for (;;) {
      try {
        const requests = plan.requests(expected);
        const { position } = await this.options.link.use((client) => client.multiStreamAppend(requests));
        const revisions = plan.heads(expected);
        return { position: await this.positionOf(plan, revisions, position), revisions };
      } catch (error) {
        if (!(error instanceof WrongExpectedVersionError)) throw error;
        if (isClaim(error.streamName)) return this.claimed(plan, error.streamName);
        expected = this.corrected(plan, expected, error);
        if (performance.now() > late_at) throw error;
      }
    }
  }

  /** Result of this append, when it stored the event id itself. @throws InvalidEvent when another append did */
  private async claimed(plan: PlannedAppend, claim_stream: string): Promise<AppendResult> {
    const stored = await this.find(plan, claim_stream);
    if (!stored) throw new InvalidEvent(`event id of ${claim_stream} is claimed, and its claim cannot be found`);
    return stored;
  }

  /**
   * Revisions for the next try after a conflict. @throws RevisionConflict when the expectation was the caller's own
   */
  private corrected(plan: PlannedAppend, tried: number[], error: WrongExpectedVersionError): number[] {
    const { streamName, actualState } = error;
    const index = plan.encoded.writes.findIndex(({ stream }) => stream === streamName);
    const actual = typeof actualState === 'bigint' ? Number(actualState) : -1;
    if (!plan.any.includes(index)) {
      const { expected } = plan.encoded.writes[index]!;
      throw new RevisionConflict(streamName, asExpected(expected), actual === -1 ? null : actual);
    }
    return tried.map((revision, n) => (n === index ? actual : revision));
  }

  /** The expected revision of each write; for 'any' the stream's newest one. */
  private async resolve(plan: PlannedAppend): Promise<number[]> {
    return Promise.all(
      plan.encoded.writes.map(async ({ stream, expected }) => {
        if (expected !== -2) return expected;
        return this.lines.get(stream)?.head ?? (await this.headOf(stream));
      }),
    );
  }

  /**
   * The first event; undefined when the stream does not exist. Has a timeout, because a read has no deadline in the
   * client: on a hanging node it would wait for the keep-alive of its connection.
   */
  private firstOf<T>(read: (client: KurrentDBClient) => AsyncIterable<T>): Promise<T | undefined> {
    const { link } = this.options;
    const first = async (events: AsyncIterable<T>) => {
      try {
        for await (const event of events) return event;
      } catch (error) {
        if (!(error instanceof StreamNotFoundError)) throw error;
      }
      return undefined;
    };
    const late = () => new Error(`no answer to a read within ${link.read_ms} ms`);
    return link.use((client) => withTimeout(first(read(client)), link.read_ms, late));
  }

  private async headOf(stream: string): Promise<number> {
    const read = { direction: BACKWARDS, fromRevision: END, maxCount: 1, requiresLeader: true } as const;
    const newest = await this.firstOf((client) => client.readStream(stream, read));
    return newest?.event ? Number(newest.event.revision) : -1;
  }

  /**
   * Finds the append by any of these claims, the last first. A server of 25.1 answers an append of which a part is
   * stored with an error that names no stream: reading all claims finds the event id that belongs to another append.
   */
  private async findAny(plan: PlannedAppend, claims: readonly string[]): Promise<AppendResult | undefined> {
    for (const claim of claims.toReversed()) {
      const stored = await this.find(plan, claim);
      if (stored) return stored;
    }
    return undefined;
  }

  /** The first result of this append if it is stored. @throws InvalidEvent when the claim is another append's */
  private async find(plan: PlannedAppend, claim_stream: string): Promise<AppendResult | undefined> {
    const read = { maxCount: 1, requiresLeader: true };
    const found = await this.firstOf((client) => client.readStream(claim_stream, read));
    if (!found?.event) return undefined;
    const claim = found.event.data as unknown as Claim;
    if (claim.append !== plan.fingerprint) {
      const streams = plan.encoded.writes.map(({ stream }) => stream).join(', ');
      throw new InvalidEvent(`an event id of the append to ${streams} belongs to another append`);
    }
    return { position: await this.readPosition(claim.last, claim.heads[claim.last]!), revisions: claim.heads };
  }

  /**
   * Position of the last event. The answer has one number where an event has two; for a transaction written as one
   * record per event both are the same, and the number is the last record's. No document guarantees that, so the first
   * append of a process compares the number with the log.
   */
  private async positionOf(plan: PlannedAppend, heads: Record<string, number>, answered: bigint): Promise<Position> {
    const position = formatPosition({ commit: answered, prepare: answered });
    if (this.answered_position === 'exact') return position;
    const { stream } = plan.encoded.writes[plan.encoded.writes.length - 1]!;
    const stored = await this.readPosition(stream, heads[stream]!);
    this.answered_position = stored === position ? 'exact' : 'other';
    return stored;
  }

  private async readPosition(stream: string, revision: number): Promise<Position> {
    const read = { fromRevision: BigInt(revision), maxCount: 1, requiresLeader: true };
    const resolved = await this.firstOf((client) => client.readStream(stream, read));
    const event = resolved && toEvent(resolved);
    if (event?.revision !== revision)
      throw new Error(`event ${revision} of ${stream} is stored and cannot be read yet`);
    return event.position;
  }
}

function refused(plan: PlannedAppend, error: unknown): Error {
  const streams = plan.encoded.writes.map(({ stream }) => stream).join(', ');
  return new InvalidEvent(`the append to ${streams} is refused: ${reason(error)}`);
}

const asExpected = (expected: number): Expected => (expected === -2 ? 'any' : expected === -1 ? 'none' : expected);
