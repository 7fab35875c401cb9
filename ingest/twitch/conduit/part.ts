import { pause } from '../../../lib/async/signal';
import type { LinkedConnection } from '../../runtime/connection/adapter';
import { type Subscription, SUBSCRIPTIONS } from '../subscriptions';
import { member } from '../../runtime/webhook/webhook';
import { namedByFrame } from './condition';
import type { Conduits } from './conduits';
import type { ChannelCoverage } from './coverage';
import type { ConduitGap } from './store';

/**
 * Time that a new channel waits for the conduit before it opens a socket; as a rule the conduit receives it by then.
 */
const FIRST_MS = 10_000;

export interface ConduitPartListener {
  /** The set of subscriptions over the conduit has changed. */
  onChange(): void;
  onGap(gap: ConduitGap): void;
  /** `alive_at`: Unix milliseconds; null when unknown. */
  onLost(alive_at: number | null): void;
  /** The conduit existed at this time, Unix milliseconds. */
  onAlive(at: number): void;
}

/** Part of a channel that is received over the conduit: all of it, some or nothing. */
export class ConduitPart {
  private coverage: ChannelCoverage | null = null;
  private attaching: Promise<void> | undefined;
  private making = false;
  private stopLooking = (): void => undefined;
  private signal: AbortSignal | undefined;

  constructor(
    private readonly conduits: Conduits | undefined,
    private readonly connection: LinkedConnection,
    private readonly listener: ConduitPartListener,
  ) {}

  /** @param is_new nothing was received earlier, so that nothing is missed while subscriptions are made */
  async begin(is_new: boolean, signal: AbortSignal): Promise<void> {
    this.signal = signal;
    await this.attach();
    if (is_new && this.coverage !== null && !this.coverage.isLimited)
      await Promise.race([this.make(), pause(FIRST_MS, signal)]);
  }

  /** Makes missing subscriptions in the background, now and whenever one has ended. */
  watch(): void {
    if (this.conduits === undefined || this.signal?.aborted) return;
    this.stopLooking = this.conduits.onLook(() => void this.look());
    void this.look();
  }

  close(): void {
    this.stopLooking();
    this.coverage?.close();
  }

  /** Subscriptions that need a socket of the owner's. */
  onSocket(): readonly Subscription[] {
    return this.coverage?.plan.onSocket() ?? SUBSCRIPTIONS;
  }

  refused(): { type: string; message: string }[] {
    return this.coverage?.plan.refused() ?? [];
  }

  since(): Readonly<Record<string, string>> {
    return this.coverage?.plan.since() ?? {};
  }

  /** Whether the conduit also receives the event in a frame of the socket. */
  receives(frame: unknown): boolean {
    if (this.coverage === null) return false;
    const name = namedByFrame(frame)?.name;
    return name !== undefined && this.coverage.plan.receives(name, member(frame, 'metadata', 'message_timestamp'));
  }

  /**
   * Settles when it is known whether the conduit also receives the event in a frame of the socket; undefined when it is
   * known already.
   */
  undecided(frame: unknown): Promise<unknown> | undefined {
    return this.coverage?.askedFor(namedByFrame(frame)?.name ?? '');
  }

  /** Undefined when no part of the channel is received over a conduit. */
  get gap(): ConduitGap | undefined {
    return this.coverage?.gap;
  }

  /** Last gap that is later than the gap with this number; null without one, or without a number. */
  gapAfter(known: number | undefined): ConduitGap | null {
    const { gap } = this;
    return known === undefined || gap === undefined || gap.number <= known ? null : gap;
  }

  get isMaking(): boolean {
    return this.making;
  }

  private async attach(): Promise<void> {
    const { conduits, connection, listener } = this;
    if (conduits === undefined || this.coverage !== null) return;
    const coverage = await conduits.coverageOf(connection);
    this.coverage = coverage;
    coverage?.listen({
      onPlan: () => listener.onChange(),
      onGap: (gap) => listener.onGap(gap),
      onLost: () => listener.onLost(coverage.alive_at),
    });
    if (this.signal?.aborted) this.close();
  }

  private async look(): Promise<void> {
    try {
      if (this.coverage === null && this.conduits?.serves(this.connection)) {
        this.attaching ??= this.attach().finally(() => (this.attaching = undefined));
        await this.attaching;
        // All subscriptions may exist already, so that none is made.
        if (this.coverage !== null) this.listener.onChange();
      }
      const alive_at = this.coverage?.alive_at ?? null;
      if (alive_at !== null) this.listener.onAlive(alive_at);
      await this.make();
    } catch (error) {
      this.failed(error);
    }
  }

  private async make(): Promise<void> {
    const { coverage, signal } = this;
    if (coverage === null || signal === undefined || signal.aborted || this.making) return;
    if (coverage.plan.next() === undefined) return;
    this.making = true;
    try {
      await coverage.make(signal);
    } catch (error) {
      this.failed(error);
    }
    this.making = false;
    if (!signal.aborted) this.listener.onChange();
  }

  private failed(error: unknown): void {
    if (this.signal?.aborted) return;
    const { connection_id } = this.connection;
    this.conduits?.deps.log.info(
      { connection_id, err: error },
      'a channel could not be subscribed over the conduit; it is tried again',
    );
  }
}
