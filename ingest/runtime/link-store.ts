import type { RecordEnvelope, Topic } from '../../domain/records';
import type { Vendor } from '../../domain/vendors';
import type { Logger } from '../../engines/log/port';
import type { Counter, Metrics } from '../../engines/metrics/port';
import type { RecordLog } from '../../engines/records/port';
import { Collector, fitting } from '../../kernel/collector';
import { failureKind } from '../../kernel/failures';
import { Backoff } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import type { LinkedConnection, Received } from './adapter';
import { envelopeOf } from './envelope';
import type { LinkFence, LinkLeases } from './link-leases';
import { aboutWhom, excessOf } from './excess';
import { type ParkedWebhookSink, PARKED_ACCOUNT, PARKED_CHANNEL, PARKED_CONNECTION } from './parked';
import type { DraftRecord, Outcome } from './webhook';

export interface LinkStoreDeps {
  records: RecordLog;
  leases: LinkLeases;
  parked: ParkedWebhookSink;
  log: Logger;
  metrics: Metrics;
}

/** What was received, on its way into the log or the dead letters. */
export interface Item {
  vendor: Vendor;
  connection: LinkedConnection;
  fence: LinkFence;
  received: Received;
  records: readonly { topic: Topic; envelope: RecordEnvelope }[];
  park: { reason: string; detail: string; subject?: string | null } | null;
  /** Memory that it takes while it waits: what was received, and its records. */
  bytes: number;
  /** Stored whoever holds the connection: no successor can have received it. */
  unfenced: boolean;
}

/** `fenced`: another process has taken the connection over, and nothing was stored. */
export type StoredOutcome = 'stored' | 'fenced';

const GROUP = { items: 1000, bytes: 4 << 20 };
/** Over many connections so much comes in a few milliseconds that a group costs little more than one message. */
const GATHER_MS = 8;
/** While groups are so large they gather longer: what each costs is shared by more, and a chat shows no difference. */
const BUSY = { items: 16, gather_ms: 24 };
const AGAIN = { first_ms: 100, most_ms: 5_000 };

/**
 * Stores what all connections of this process receive: what comes together leaves together, after one question whether
 * each is still ours. While an engine is away it is tried again, and everything waits in order.
 */
export class LinkStore {
  private readonly closing = new AbortController();
  private readonly groups: Collector<Item, StoredOutcome>;
  private readonly outcomes: Counter;
  private busy = false;
  /** Bytes that wait, over all connections. */
  waiting_bytes = 0;

  constructor(private readonly deps: LinkStoreDeps) {
    this.outcomes = deps.metrics.counter(
      'lumio_adapter_messages_total',
      'What vendors said over connections of ours, by how it ended',
      ['vendor', 'outcome'],
    );
    this.groups = new Collector({
      take: (waiting) => {
        const count = fitting(waiting, GROUP, ({ bytes }) => ({ items: 1, bytes }));
        this.busy = count >= BUSY.items;
        return { count, group: waiting.slice(0, count) };
      },
      send: (group) =>
        this.send(group).finally(() => {
          for (const { bytes } of group) this.waiting_bytes -= bytes;
        }),
      gather_ms: () => this.gather_ms,
    });
  }

  private get gather_ms(): number {
    if (this.groups.waiting >= GROUP.items) return 0;
    return this.busy ? BUSY.gather_ms : GATHER_MS;
  }

  /** Null when there is nothing to store: understood, and not ours to keep. */
  item(
    vendor: Vendor,
    connection: LinkedConnection,
    fence: LinkFence,
    received: Received,
    outcome: Outcome,
  ): Item | null {
    const bytes = received.text.length;
    const base = { vendor, connection, fence, received, bytes, unfenced: false };
    const parked = (reason: string, detail: string, subject?: string | null) => ({
      ...base,
      records: [],
      park: { reason, detail, subject },
    });
    switch (outcome.kind) {
      case 'skip':
        this.outcomes.inc(1, { vendor, outcome: outcome.reason });
        return null;
      case 'refuse':
        return parked('refused', outcome.message);
      case 'park':
        return parked(outcome.reason, outcome.detail);
      case 'ok': {
        const { records } = outcome;
        const excess = excessOf(records);
        if (excess !== null) return parked(excess.reason, excess.detail, aboutWhom(records));
        return {
          ...base,
          records: records.map((draft) => recordOf(draft, received)),
          park: null,
          bytes: records.reduce((sum, { raw }) => sum + raw.length, bytes),
        };
      }
    }
  }

  /** Resolves when it is durable, or was refused by the fence. Rejects when the store was closed before. */
  add(item: Item): Promise<StoredOutcome> {
    this.waiting_bytes += item.bytes;
    return this.groups.add(item);
  }

  /** Gives up what cannot be stored now. */
  close(): void {
    this.closing.abort(new Error('the process ends'));
  }

  private async send(group: readonly Item[]): Promise<readonly (StoredOutcome | Error)[]> {
    const backoff = new Backoff(AGAIN);
    for (;;) {
      try {
        return await this.store(group);
      } catch (error) {
        if (this.closing.signal.aborted) throw error;
        const facts = { err: error, waiting: this.groups.waiting, failures: backoff.failures + 1 };
        this.deps.log.warn(facts, 'what vendors said could not be stored; it is tried again');
        await pause(backoff.next(), this.closing.signal);
        if (this.closing.signal.aborted) throw error;
      }
    }
  }

  private async store(group: readonly Item[]): Promise<readonly StoredOutcome[]> {
    const fences = new Set<LinkFence>();
    for (const { fence, unfenced } of group) if (!unfenced) fences.add(fence);
    const current = fences.size === 0 ? fences : await this.deps.leases.current([...fences]);
    const passes = ({ fence, unfenced }: Item) => unfenced || current.has(fence);
    const mine = group.filter(passes);
    await this.append(mine);
    for (const item of mine) if (item.park !== null) await this.park(item, item.park);
    const stored = new Map<Vendor, number>();
    for (const { vendor, park } of mine) if (park === null) stored.set(vendor, (stored.get(vendor) ?? 0) + 1);
    for (const [vendor, count] of stored) this.outcomes.inc(count, { vendor, outcome: 'stored' });
    return group.map((item) => (passes(item) ? 'stored' : 'fenced'));
  }

  private async append(items: readonly Item[]): Promise<void> {
    const topics = new Map<Topic, RecordEnvelope[]>();
    for (const { records } of items) {
      for (const { topic, envelope } of records) {
        const listed = topics.get(topic);
        if (listed) listed.push(envelope);
        else topics.set(topic, [envelope]);
      }
    }
    try {
      await Promise.all([...topics].map(([topic, envelopes]) => this.deps.records.append(topic, envelopes)));
    } catch (error) {
      // The same record would fail for ever; anything else may pass.
      if (failureKind(error) !== 'data') throw error;
      if (items.length > 1) for (const item of items) await this.append([item]);
      else await this.parkUnstorable(items[0]!, error as Error);
    }
  }

  private parkUnstorable(item: Item, { message }: Error): Promise<void> {
    const subject = aboutWhom(item.records.map(({ envelope }) => envelope));
    return this.park(item, { reason: 'not_storable', detail: message, subject });
  }

  private async park(item: Item, { reason, detail, subject }: NonNullable<Item['park']>): Promise<void> {
    const { vendor, connection, received } = item;
    const { connection_id, account_id, channel_id } = connection;
    await this.deps.parked.park({
      vendor,
      reason,
      detail,
      headers: {
        [PARKED_CONNECTION]: connection_id,
        [PARKED_CHANNEL]: channel_id,
        ...(account_id !== null && { [PARKED_ACCOUNT]: account_id }),
      },
      raw_body: Buffer.from(received.text),
      subject,
      trace: null,
      received_at: received.received_at,
    });
    this.outcomes.inc(1, { vendor, outcome: 'parked' });
  }
}

function recordOf(draft: DraftRecord, { received_at }: Received) {
  const { owner, topic } = draft;
  if (owner.kind !== 'account') throw new Error('what comes over a connection says which account it is for');
  return { topic, envelope: envelopeOf(draft, owner.account_id, received_at, null) };
}
