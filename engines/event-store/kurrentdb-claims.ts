import { createHash } from 'node:crypto';
import { jsonEvent, type AppendStreamRequest, type EventData } from '@kurrent/kurrentdb-client';
import { v4, v5 } from 'uuid';
import { InvalidEvent, type EncodedAppend } from './checks';
import { CLAIM_TYPE, RECORDED_AT } from './kurrentdb-events';
import type { Metadata, StreamWrite } from './port';

/** Namespace of the ids that claims get. */
const NAMESPACE = '5a2b3f0e-7c41-4c1d-9d0e-3f6b8a1c2d4e';
/** What the server takes for an event type ("schema name"). */
const TYPE = /^[a-zA-Z0-9_.$:-]+$/;
const CLAIM = 'lumio-event-';

/** What a claim remembers of the append that wrote it: enough to answer again with the first result. */
export interface Claim {
  /** Which append it was: a hash over its streams and event ids. */
  append: string;
  /** Stream name to the revision of its last event in that append. */
  heads: Record<string, number>;
  /** Stream of the append's last event. */
  last: string;
}

/**
 * One append as it will be sent. The server knows no index of event ids: it recognises a repeated append by the place
 * of its events, and for 'any' only by a cache in memory. So each event id is claimed by a stream of its own,
 * `lumio-event-<id>`, written in the same transaction with the expectation that it does not exist: no id can ever be
 * stored twice, and a claim found tells the first result.
 */
export class PlannedAppend {
  readonly fingerprint: string;
  /** Indexes of the writes whose revision must be looked up first. */
  readonly any: readonly number[];
  /** Stream of the last event's claim: where a stored append is found again. */
  readonly last_claim: string;
  private readonly claim_ids: string[];
  private readonly events: EventData[][];

  /** @throws InvalidEvent for names that the server refuses, or takes for one and the same. */
  constructor(
    readonly encoded: EncodedAppend,
    writes: readonly StreamWrite[],
    metadata: Metadata,
  ) {
    const own = encoded.writes.map(({ stream, ids }) => [stream, ids]);
    this.fingerprint = createHash('sha256').update(JSON.stringify(own)).digest('hex');
    this.any = encoded.writes.flatMap(({ expected }, index) => (expected === -2 ? [index] : []));
    const own_metadata = { ...metadata, [RECORDED_AT]: new Date().toISOString() };
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
    this.last_claim = claimStream(ids[ids.length - 1]!);
    // The claims of an append with fixed revisions repeat exactly, so that sending it again is a repetition in the
    // server's eyes, too. With 'any' the revisions differ each time; then the claims must differ as well, for a clean
    // conflict on them.
    this.claim_ids = ids.map((_, n) => (this.any.length === 0 ? v5(`${this.fingerprint}:${n}`, NAMESPACE) : v4()));
  }

  /**
   * The transaction, with the revision found for each 'any'. Claims go first: the append's last event is the
   * transaction's last.
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
