import type { Conduit, ConduitSubscription } from '../../../vendors/twitch/port';
import type { OAuthApp } from '../../../vendors/oauth/port';
import { namedBy } from './condition';
import type { Conduits } from './conduits';
import { listedAtTwitch } from './listed';
import { readTime } from '../../../lib/time/vendor-times';

/** Maximum pages of 100 subscriptions compared, and maximum channels asked for, per check. */
const MAX_PAGES = 10;
const MAX_CHANNELS = 25;
/** Failures at one page after which its cursor may have expired. */
const MAX_FAILURES = 5;
/** Age below which a subscription may belong to a channel that is being connected. */
const YOUNG_MS = 10 * 60_000;

interface Sweep {
  conduit_id: string;
  /** Time of the database at its begin. */
  began: string;
  after: string | null;
  failures: number;
  /** True when all pages are compared: subscriptions on no page are confirmed next. */
  is_listed: boolean;
}

/** Compares all subscriptions of the conduit with Twitch's, a part in each check. */
export class Comparison {
  private sweep: Sweep | null = null;
  private swept_at = -Infinity;

  constructor(
    private readonly conduits: Conduits,
    private readonly every_ms: number,
    private readonly signal: AbortSignal,
  ) {}

  /** Makes the next check begin a comparison. */
  repeat(): void {
    this.swept_at = -Infinity;
  }

  /**
   * Compares the next part. True when some of ours are missing at Twitch.
   * @param connected channels whose subscriptions are wanted
   */
  async run(app: OAuthApp, conduit: Conduit, connected: ReadonlySet<string>): Promise<boolean> {
    const { id } = conduit;
    if (this.sweep?.conduit_id !== id) {
      if (this.sweep === null && performance.now() - this.swept_at < this.every_ms) return false;
      const began = await this.conduits.store.now();
      this.sweep = { ...{ conduit_id: id, began, after: null }, ...{ failures: 0, is_listed: false } };
    }
    const { sweep } = this;
    if (!sweep.is_listed) await this.comparePages(app, sweep, connected);
    return sweep.is_listed && this.confirmMissing(app, conduit, sweep);
  }

  private async comparePages(app: OAuthApp, sweep: Sweep, connected: ReadonlySet<string>): Promise<void> {
    for (let page = 0; page < MAX_PAGES && !sweep.is_listed && !this.signal.aborted; page += 1) {
      const after = sweep.after === null ? {} : { after: sweep.after };
      const answer = await this.conduits.deps.twitch.subscriptions(app, after).catch((error: unknown) => {
        sweep.failures += 1;
        if (sweep.failures >= MAX_FAILURES) this.sweep = null;
        throw error;
      });
      const own = answer.subscriptions.filter(({ conduit_id }) => conduit_id === sweep.conduit_id);
      await this.comparePage(app, sweep.conduit_id, own, connected);
      sweep.failures = 0;
      sweep.after = answer.after;
      sweep.is_listed = answer.after === null;
    }
  }

  private async comparePage(
    app: OAuthApp,
    conduit_id: string,
    own: readonly ConduitSubscription[],
    connected: ReadonlySet<string>,
  ): Promise<void> {
    const { store, deps } = this.conduits;
    const enabled = own.filter((one) => one.enabled);
    const over = own.filter((one) => !one.enabled).map(({ id }) => id);
    if (over.length > 0) await store.ended(over);
    const known = await store.seen(enabled.map(({ id }) => id));
    for (const { id, type, condition, created_at } of enabled) {
      if (known.has(id)) continue;
      const named = namedBy(type, condition);
      if (named !== null && connected.has(named.channel_id)) {
        const { channel_id, name } = named;
        const since = created_at ?? new Date().toISOString();
        await store.write(conduit_id, channel_id, [{ name, subscription_id: id, since, refused: null, consent: null }]);
      } else if (Date.now() - (readTime(created_at) ?? Number.NaN) > YOUNG_MS) {
        // One without a row is another installation's, which knows channels that this one does not.
        if (named !== null && (await store.names(conduit_id, named))) await deps.twitch.unsubscribe(app, id);
      }
    }
  }

  /**
   * Looks up subscriptions that no page listed, because a page may miss one while others are made and ended. True when
   * some are missing at Twitch.
   */
  private async confirmMissing(app: OAuthApp, conduit: Conduit, { began }: Sweep): Promise<boolean> {
    const { store, deps } = this.conduits;
    const channels = await store.unseen(conduit.id, began, MAX_CHANNELS);
    let ended = 0;
    for (const channel_id of channels) {
      if (this.signal.aborted) break;
      const found = [...(await listedAtTwitch(deps.twitch, { app, conduit }, channel_id)).values()];
      await store.seen(found.flatMap(({ subscription_id }) => subscription_id ?? []));
      ended += await store.endUnseen(conduit.id, channel_id, began);
    }
    if (channels.length < MAX_CHANNELS) [this.sweep, this.swept_at] = [null, performance.now()];
    return ended > 0;
  }
}
