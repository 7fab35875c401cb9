import { createHash } from 'node:crypto';
import { jsonEvent, type AppendStreamRequest, type EventData } from '@kurrent/kurrentdb-client';
import { v4, v5 } from 'uuid';
import { InvalidEvent, type EncodedAppend } from '../checks';
import { CLAIM_TYPE } from './events';
import { type Metadata, RECORDED_AT, type StreamWrite } from '../port';

/** UUID namespace of the claims' ids. */
const NAMESPACE = '5a2b3f0e-7c41-4c1d-9d0e-3f6b8a1c2d4e';
/** Event types ("schema names") that the server accepts. */
const TYPE = /^[a-zA-Z0-9_.$:-]+$/;
const CLAIM = 'lumio-event-';

/** Content of a claim: identifies the append that wrote it, with its result. */
export interface Claim {
  /** Hash over the append's streams and event ids. */
  append: string;
  /** Stream name to the revision of its last event in that append. */
  heads: Record<string, number>;
  /** Stream of the append's last event. */
  last: string;
}

/**
 * Append in the form in which it is sent. The server has no index of event ids: it recognises a repeated append by the
 * revisions of its events, and with 'any' only by a cache in memory. So each event id is claimed by a stream of its
 * own, `lumio-event-<id>`, written in the same transaction with the expectation that it does not exist: no id can be
 * stored twice, and an existing claim holds the first result.
 */
export class PlannedAppend {
  readonly fingerprint: string;
  /** Indexes of the writes whose revision must be looked up first. */
  readonly any: readonly number[];
  /** Streams of all claims; the last event's is the one that finds a stored append. */
  readonly claims: readonly string[];
  private readonly claim_ids: string[];
  private readonly events: EventData[][];

  /** @throws InvalidEvent for names that the server refuses, or treats as equal. */
  constructor(
    readonly encoded: EncodedAppend,
    writes: readonly StreamWrite[],
    metadata: Metadata,
  ) {
    const own = encoded.writes.map(({ stream, ids }) => [stream, ids]);
    this.fingerprint = createHash('sha256').update(JSON.stringify(own)).digest('hex');
    this.any = encoded.writes.flatMap(({ expected }, index) => (expected === -2 ? [index] : []));
    const own_metadata = { [RECORDED_AT]: new Date().toISOString(), ...metadata };
    this.events = encoded.writes.map(({ ids, types }, index) =>
      ids.map((id, n) =>
        jsonEvent({ id, type: checkType(types[n]!), data: writes[index]!.events[n]!.data, metadata: own_metadata }),
      ),
    );
    const seen = new Set<string>();
    for (const { stream } of encoded.writes) {
      if (/^(?:\$|lumio-)/.test(stream))
        throw new InvalidEvent(`stream ${stream}: names of this kind are the store's own`);
      if (seen.has(stream.toLowerCase()))
        throw new InvalidEvent(`stream ${stream} differs from another one of the append by case only`);
      seen.add(stream.toLowerCase());
    }
    const ids = encoded.writes.flatMap((write) => write.ids);
    this.claims = ids.map(claimStream);
    // The claims of an append with fixed revisions repeat exactly, so that the server recognises the repetition, too.
    // With 'any' the revisions differ each time; then the claims must differ as well, so that they conflict cleanly.
    this.claim_ids = ids.map((_, n) => (this.any.length === 0 ? v5(`${this.fingerprint}:${n}`, NAMESPACE) : v4()));
  }

  /**
   * The transaction, with the resolved revision for each 'any'. Claims come first, so that the append's last event is
   * the transaction's last.
   */
  requests(expected: readonly number[]): AppendStreamRequest[] {
    const { writes } = this.encoded;
    const heads = this.heads(expected);
    const data = { append: this.fingerprint, heads, last: writes[writes.length - 1]!.stream };
    const ids = writes.flatMap((write) => write.ids);
    const claims = ids.map((id, n): AppendStreamRequest => ({
      streamName: claimStream(id),
      expectedState: 'no_stream',
      events: [jsonEvent({ id: this.claim_ids[n]!, type: CLAIM_TYPE, data })],
    }));
    const own = writes.map(({ stream }, index): AppendStreamRequest => ({
      streamName: stream,
      expectedState: expected[index] === -1 ? 'no_stream' : BigInt(expected[index]!),
      events: this.events[index]!,
    }));
    return [...claims, ...own];
  }

  /** Revision of each stream's last event once the append is stored. */
  heads(expected: readonly number[]): Record<string, number> {
    return Object.fromEntries(
      this.encoded.writes.map(({ stream, ids }, index) => [stream, expected[index]! + ids.length]),
    );
  }
}

export const claimStream = (event_id: string): string => `${CLAIM}${event_id}`;
export const isClaim = (stream: string): boolean => stream.startsWith(CLAIM);

function checkType(type: string): string {
  if (!TYPE.test(type) || /^(?:\$|lumio\.)/.test(type))
    throw new InvalidEvent(`event type ${JSON.stringify(type)} must be of letters, digits and _ . : - for this store`);
  return type;
}
