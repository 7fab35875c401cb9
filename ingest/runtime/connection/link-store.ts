import type { RecordEnvelope, Topic } from '../../../domain/common/records';
import type { Vendor } from '../../../domain/common/vendors';
import type { Logger } from '../../../engines/log/port';
import type { Counter, Metrics } from '../../../engines/metrics/port';
import type { RecordLog } from '../../../engines/records/port';
import { Collector, fitting } from '../../../lib/async/collector';
import { failureKind } from '../../../kernel/failures';
import { Backoff } from '../../../lib/async/retry';
import { pause } from '../../../lib/async/signal';
import type { ChannelEmotes } from '../../../services/chat/emotes';
import type { LinkedConnection, Received } from './adapter';
import { envelopeOf } from '../parse/envelope';
import type { LinkFence, LinkLeases } from './link-leases';
import { firstSubject, storageLimitViolation } from '../parse/storage-limits';
import { withPictures } from '../parse/chat-pictures';
import { candidatesOf, type FirstMessageCandidate, type FirstMessages } from '../parse/first-messages';
import { type ParkedWebhookSink, PARKED_ACCOUNT, PARKED_CHANNEL, PARKED_CONNECTION } from '../parked/parked';
import type { DraftRecord, Outcome } from '../webhook/webhook';

export interface LinkStoreDeps {
  records: RecordLog;
  leases: LinkLeases;
  parked: ParkedWebhookSink;
  /** Default: no events of first messages. */
  first_messages?: FirstMessages;
  /** Default: no emotes of third parties and no pictures of badges. */
  emotes?: Pick<ChannelEmotes, 'known'>;
  log: Logger;
  metrics: Metrics;
}

/** A received message, on its way into the log or the dead letters. */
export interface Item {
  vendor: Vendor;
  connection: LinkedConnection;
  fence: LinkFence;
  received: Received;
  records: readonly { topic: Topic; envelope: RecordEnvelope }[];
  first_messages: readonly FirstMessageCandidate[];
  park: { reason: string; detail: string; subject?: string | null } | null;
  /** Memory of the waiting item: the message, and its records. */
  bytes: number;
  /** True when it is stored whoever holds the connection, because no successor can have received it. */
  unfenced: boolean;
}

/** `fenced`: another process has taken the connection over, and nothing was stored. */
export type StoredOutcome = 'stored' | 'fenced';

const GROUP = { items: 1000, bytes: 4 << 20 };
/**
 * Gathering time of a group: over many connections a group of a few milliseconds costs little more than one message.
 */
const GATHER_MS = 8;
/**
 * From this size on groups gather longer: their fixed cost is shared by more messages, and a chat shows no difference.
 */
const BUSY = { items: 16, gather_ms: 24 };
const AGAIN = { first_ms: 100, most_ms: 5_000 };

/**
 * Stores the messages of all connections of this process in groups, after one check whether this process still holds
 * each connection. While an engine is unavailable the group is retried, and everything waits in order.
 */
export class LinkStore {
  private readonly closing = new AbortController();
  private readonly groups: Collector<Item, StoredOutcome>;
  private readonly outcomes: Counter;
  private busy = false;
  /** Unstored bytes, over all connections. */
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

  /** Makes an item; null for a message that is understood and not stored. */
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
      first_messages: [],
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
        const records = outcome.records.map((record) => withPictures(record, this.deps.emotes));
        const excess = storageLimitViolation(records);
        if (excess !== null) return parked(excess.reason, excess.detail, firstSubject(records));
        return {
          ...base,
          records: records.map((draft) => recordOf(draft, received)),
          first_messages: records.flatMap((draft) => candidateOf(draft, received)),
          park: null,
          bytes: records.reduce((sum, { raw }) => sum + raw.length, bytes),
        };
      }
    }
  }

  /** Resolves when the item is durable, or was refused by the fence. Rejects when the store was closed earlier. */
  add(item: Item): Promise<StoredOutcome> {
    this.waiting_bytes += item.bytes;
    return this.groups.add(item);
  }

  /** Aborted when nothing more is retried. */
  get ending(): AbortSignal {
    return this.closing.signal;
  }

  /** Stops retrying items that cannot be stored now. */
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
    const stored_firsts = await this.deps.first_messages?.announce(mine.flatMap((item) => item.first_messages));
    await this.append(mine);
    stored_firsts?.();
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
      // The same record would always fail; other errors may pass.
      if (failureKind(error) !== 'data') throw error;
      if (items.length > 1) for (const item of items) await this.append([item]);
      else await this.parkUnstorable(items[0]!, error as Error);
    }
  }

  private parkUnstorable(item: Item, { message }: Error): Promise<void> {
    const subject = firstSubject(item.records.map(({ envelope }) => envelope));
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

const candidateOf = (message: DraftRecord, { received_at }: Received) =>
  candidatesOf(message, { account_id: accountOf(message), received_at, trace: null });

const recordOf = (draft: DraftRecord, { received_at }: Received) => ({
  topic: draft.topic,
  envelope: envelopeOf(draft, accountOf(draft), received_at, null),
});

function accountOf({ owner }: DraftRecord): string {
  if (owner.kind !== 'account') throw new Error('what comes over a connection says which account it is for');
  return owner.account_id;
}
