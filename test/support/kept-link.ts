import type { RecordEnvelope } from '../../domain/common/records';
import type { Json } from '../../lib/json/json';
import {
  type Adapter,
  ConnectionRefused,
  type Link,
  type LinkStatus,
  type LinkedConnection,
  type Received,
} from '../../ingest/runtime/connection/adapter';
import type { DraftRecord, Outcome } from '../../ingest/runtime/webhook/webhook';

/** A link that keeps what an adapter does with it, for one process and without an engine. */
export class KeptLink implements Link {
  readonly received: Received[] = [];
  readonly outcomes: Outcome[] = [];
  readonly statuses: [LinkStatus, string?][] = [];
  readonly gaps: { from: number | null; to: number; detail: string }[] = [];
  /** Tokens that the vendor has refused, as the adapter told. */
  readonly refused: string[] = [];
  state: Json = null;
  full = false;
  last_heard: number | null = null;
  readonly handed_over = false;
  readonly holding = 1;
  private readonly closing = new AbortController();
  readonly signal = this.closing.signal;

  constructor(
    private readonly adapter: Pick<Adapter, 'normalise'>,
    readonly connection: LinkedConnection,
    /** What it may use, one after the other. */
    private readonly tokens: readonly string[],
  ) {}

  async token(refused?: string): Promise<string> {
    if (refused !== undefined) this.refused.push(refused);
    const token = this.tokens.find((one) => !this.refused.includes(one));
    if (token === undefined) throw new ConnectionRefused('no_token');
    return token;
  }

  async deliver(received: Received): Promise<void> {
    this.received.push(received);
    this.outcomes.push(this.adapter.normalise(received, this.connection));
  }

  async drained(): Promise<void> {}

  status(status: LinkStatus, detail?: string): void {
    this.statuses.push(detail === undefined ? [status] : [status, detail]);
  }

  keep(state: Json): void {
    this.state = state;
  }

  keepBeginning(): void {}

  heard(at: number): void {
    this.last_heard = at;
  }

  missed(gap: { from: number | null; to: number; detail: string }): void {
    this.gaps.push(gap);
  }

  close(): void {
    this.closing.abort();
  }

  /** Records that the outcomes hold, each external id once, as the projector counts them. */
  get records(): DraftRecord[] {
    const all = this.outcomes.flatMap((outcome) => (outcome.kind === 'ok' ? outcome.records : []));
    const seen = new Set<RecordEnvelope['external_id']>();
    return all.filter(({ external_id }) => external_id === null || (!seen.has(external_id) && seen.add(external_id)));
  }
}
