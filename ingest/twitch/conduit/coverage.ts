import { retry } from '../../../lib/async/retry';
import { yieldToEventLoop } from '../../../lib/async/signal';
import type { ConduitSubscriptionAnswer } from '../../../vendors/twitch/port';
import type { LinkedConnection } from '../../runtime/connection/adapter';
import type { Subscription } from '../subscriptions';
import type { Conduits, CurrentConduit } from './conduits';
import { listedAtTwitch } from './listed';
import { ChannelPlan, NO_CONSENT } from './plan';
import type { ConduitGap, KeptConduit, KeptSubscription, SubscriptionChange } from './store';

const ENDED = { subscription_id: null, since: null, refused: null, consent: null };
const RETRY = { first_ms: 250, most_ms: 4_000, tries: 4 };

export interface CoverageListener {
  /** The set of subscriptions over the conduit has changed. */
  onPlan(): void;
  /** No shard was connected for a time. */
  onGap(gap: ConduitGap): void;
  /** The conduit no longer exists, nor do its subscriptions. */
  onLost(): void;
}

/** Part of one channel in the conduit, for the session that holds the channel's connection. */
export class ChannelCoverage {
  readonly plan: ChannelPlan;
  readonly channel_id: string;
  private listener: CoverageListener | undefined;
  /** Last gap of the conduit; number 0 without one. */
  gap: ConduitGap;
  /** Last time at which the conduit existed; Unix milliseconds. */
  alive_at: number | null;
  private making: Promise<void> | undefined;
  /** Subscriptions with an unanswered request to Twitch, by name; settles with the answer. */
  private readonly asked = new Map<string, Promise<unknown>>();

  constructor(
    private readonly conduits: Conduits,
    private readonly current: CurrentConduit,
    private readonly connection: LinkedConnection,
    kept: readonly KeptSubscription[],
    private readonly onClose: () => void,
  ) {
    this.channel_id = connection.channel_id;
    this.plan = new ChannelPlan(connection, kept);
    this.gap = current.conduit.gap;
    this.alive_at = current.conduit.checked_at;
  }

  /** Whether calls for this channel would wait for the app's bucket. */
  get isLimited(): boolean {
    return this.conduits.budget.isEmpty;
  }

  listen(listener: CoverageListener): void {
    this.listener = listener;
  }

  close(): void {
    this.listener = undefined;
    this.onClose();
  }

  apply(rows: readonly KeptSubscription[]): void {
    const changed = rows.filter((row) => this.plan.note(row));
    if (changed.length > 0) this.listener?.onPlan();
  }

  onConduit(conduit: KeptConduit | null): void {
    if (conduit === null || conduit.id !== this.current.conduit.id) return this.listener?.onLost();
    this.alive_at = conduit.checked_at;
    if (conduit.gap.number === this.gap.number) return;
    this.gap = conduit.gap;
    this.listener?.onGap(conduit.gap);
  }

  /**
   * Makes the missing subscriptions, one after the other, and stores the results. A second call waits for the running
   * one.
   * @throws errors of outside calls when Twitch does not answer
   */
  make(signal: AbortSignal): Promise<void> {
    this.making ??= this.makeAll(signal).finally(() => (this.making = undefined));
    return this.making;
  }

  /** Settles when it is known whether a subscription is made; undefined without a running request. */
  askedFor(name: string): Promise<unknown> | undefined {
    return this.asked.get(name);
  }

  private async makeAll(signal: AbortSignal): Promise<void> {
    const { store } = this.conduits;
    const { id } = this.current.conduit;
    let made = false;
    try {
      for (let next = this.plan.next(); next !== undefined; next = this.plan.next()) {
        const { name } = next;
        await store.ask(id, this.channel_id, name);
        const change = await this.makeOne(next, signal);
        // Before the write: frames of the socket wait only for the answer.
        if (change !== null) this.plan.note(change);
        await store.write(id, this.channel_id, [change ?? { ...ENDED, name }]);
        if (change === null) continue;
        made = true;
        this.listener?.onPlan();
      }
    } finally {
      if (made) this.conduits.announce();
    }
  }

  private async makeOne(wanted: Subscription, signal: AbortSignal): Promise<SubscriptionChange | null> {
    const { name, type, older } = wanted;
    const { app, conduit } = this.current;
    const { budget, deps } = this.conduits;
    // Channels are read by their owners.
    const condition = wanted.condition({ channel_id: this.channel_id, user_id: this.channel_id });
    let { version } = wanted;
    const subscribe = async (): Promise<ConduitSubscriptionAnswer> => {
      const answer = deps.twitch.subscribe(app, { type, version, condition, conduit_id: conduit.id }, signal);
      const settled = answer.then(
        // The result is noted a little later.
        () => yieldToEventLoop(),
        () => undefined,
      );
      this.asked.set(name, settled);
      void settled.then(() => this.asked.delete(name));
      return answer;
    };
    const ask = () => budget.use(signal, subscribe);
    for (;;) {
      const answer = await retry(ask, { ...RETRY, signal, passing: () => !signal.aborted });
      switch (answer.kind) {
        case 'made': {
          if (answer.left !== null) budget.note(answer.left);
          const since = answer.created_at ?? new Date().toISOString();
          return { name, subscription_id: answer.id, since, refused: null, consent: null };
        }
        case 'exists':
          return this.find(name);
        case 'limited':
          budget.limited(answer.until);
          break;
        case 'refused':
          if (answer.status === 400 && older !== undefined && version !== older) {
            version = older;
            break;
          }
          if (answer.status !== NO_CONSENT) {
            this.plan.fail(name);
            deps.log.info(
              { type, status: answer.status, detail: answer.message },
              'Twitch refuses a conduit subscription',
            );
            return null;
          }
          return {
            ...{ name, subscription_id: null, since: null },
            ...{ refused: answer.message || String(answer.status), consent: this.connection.since ?? null },
          };
      }
    }
  }

  /** Finds a subscription of a process that ended before it stored the id. */
  private async find(name: string): Promise<SubscriptionChange | null> {
    const found = await listedAtTwitch(this.conduits.deps.twitch, this.current, this.channel_id);
    const change = found.get(name);
    if (change === undefined) this.plan.fail(name);
    return change ?? null;
  }
}
