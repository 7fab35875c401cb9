import type { Logger } from '../../engines/log/port';
import type { Counter } from '../../engines/metrics/port';
import type { Json } from '../../kernel/json';
import { Backoff } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import {
  type Adapter,
  type AdapterSession,
  ConnectionRefused,
  type Link,
  LinkLost,
  type LinkStatus,
  type LinkedConnection,
  PauseAsked,
  type Received,
} from './adapter';
import type { LinkLeases, LinkReport, TakenLink } from './link-leases';
import type { Item, LinkStore } from './link-store';
import { park, type Outcome } from './webhook';

export interface HeldLinkDeps {
  leases: LinkLeases;
  store: LinkStore;
  /** A token of the connection. @throws ConnectionRefused */
  token(connection: LinkedConnection, refused?: string): Promise<string>;
  /** Its owner must connect anew. */
  refused(connection: LinkedConnection, reason: string): Promise<void>;
  log: Logger;
  missed: Counter;
  sessions: Counter;
  timings: LinkTimings;
}

export interface LinkTimings {
  /** Pauses between tries. */
  retry: { first_ms: number; most_ms: number };
  /** A session that lasted so long begins the pauses anew. */
  stable_ms: number;
  /** How long a process that gives a connection away goes on reading until its successor does. */
  handover_ms: number;
  /** The same for a process that stops. */
  stop_handover_ms: number;
  /** How often it looks whether the successor does. */
  look_ms: number;
  /** How long it then reads on for what is on its way. */
  read_on_ms: number;
  /** How often a connection that its vendor refuses is tried, lest its owner mended it unseen. */
  refused_ms: number;
}

export const TIMINGS: LinkTimings = {
  retry: { first_ms: 500, most_ms: 60_000 },
  stable_ms: 60_000,
  handover_ms: 20_000,
  stop_handover_ms: 4_000,
  look_ms: 250,
  read_on_ms: 1_000,
  refused_ms: 300_000,
};

/** Most bytes of one connection that wait to be stored before no more is read, and of all of a process. */
const LINK_BYTES = 2 << 20;
const ALL_BYTES = 64 << 20;
/** How often it is noted that the vendor was heard. */
const HEARD_EVERY_MS = 15_000;
/** Longest detail of a status, in characters: vendors' words may be in it. */
const MOST_DETAIL = 500;
const REPORT_AGAIN_MS = 1_000;
const DRAIN_LOOK_MS = 20;
const NOTHING_TO_STORE = Promise.resolve();
/** The database did not say who follows. */
const UNKNOWN: { taken: boolean; state?: Json } = { taken: true };

/**
 * One connection that this process holds: opened, opened again with pauses, and at the end handed over. Until the
 * successor reads from the vendor this process goes on reading, so that nothing falls between them; what both could
 * have received is stored by the successor alone.
 */
export class HeldLink<Session extends AdapterSession = AdapterSession> implements Link {
  private readonly closing = new AbortController();
  readonly signal = this.closing.signal;
  private readonly backoff: Backoff;
  private session: Session | undefined;
  private state: Json;
  private shown: LinkStatus = 'connecting';
  private waiting_bytes = 0;
  private pending = 0;
  private heard_at = 0;
  private noted_at = 0;
  /** Told by the fence: what cannot be the successor's alone is still stored. */
  private replaced = false;
  private successor: Promise<Json | undefined> | undefined;
  /** Until when the process before reads on, by `performance.now()`. */
  private read_on_until: number;
  private giving_away = false;
  private tried = false;
  private endFirstTry!: () => void;
  /** Resolves when the first try to open it has ended: whoever constructs it gives it the turn for that one. */
  readonly first_try = new Promise<void>((end) => (this.endFirstTry = end));
  /** Not yet known to be written. */
  private unwritten: LinkReport = {};

  constructor(
    private readonly adapter: Adapter<Session>,
    readonly connection: LinkedConnection,
    private readonly taken: TakenLink,
    private readonly deps: HeldLinkDeps,
  ) {
    this.state = taken.state;
    this.read_on_until = taken.given_away_ms_ago === null ? 0 : this.readOnUntil(taken.given_away_ms_ago);
    this.backoff = new Backoff(deps.timings.retry);
  }

  /** Until it is closed. Never rejects. */
  async run(): Promise<void> {
    while (!this.signal.aborted) {
      const opened_at = performance.now();
      const wait_ms = await this.holdSession();
      if (performance.now() - opened_at > this.deps.timings.stable_ms) this.backoff.reset();
      if (this.giving_away) this.closing.abort();
      await pause(wait_ms ?? this.backoff.next(), this.signal);
    }
  }

  /** To be called before another process can take it: that one need not look for what it has missed. */
  async announce(): Promise<void> {
    if (this.signal.aborted) return;
    const given_away_ms_ago = this.session === undefined ? this.givenAwayBefore() : 0;
    if (given_away_ms_ago === null) return;
    await this.deps.leases.report(this.taken.fence, { given_away: true, given_away_ms_ago }).catch(() => false);
  }

  /** How long ago the process before gave it away, while that one reads on; null where nobody does. */
  private givenAwayBefore(): number | null {
    return this.handed_over ? this.reads_on_ms - (this.read_on_until - performance.now()) : null;
  }

  /**
   * Another process should have it: this one reads on until that one does, or until nobody wants it. Resolves when
   * nothing is left to do.
   */
  async giveAway(stopping = false): Promise<void> {
    const { leases, timings } = this.deps;
    const { fence } = this.taken;
    this.giving_away = true;
    // Without a session there is nothing to read on.
    if (this.session === undefined) this.closing.abort();
    const give_up_at = performance.now() + (stopping ? timings.stop_handover_ms : timings.handover_ms);
    let taken = false;
    while (!this.signal.aborted && performance.now() < give_up_at) {
      const found = await leases.successor(fence).catch(() => UNKNOWN);
      taken = found.taken;
      // A database that does not answer does not say that nobody wants it.
      if (!taken && !(await leases.wanted(fence.link).catch(() => true))) break;
      if (found.state !== undefined) {
        // What was said before the successor listened may still be on its way.
        await pause(timings.read_on_ms, this.signal);
        break;
      }
      await pause(timings.look_ms, this.signal);
    }
    // Who takes it after this has missed something.
    if (!taken && !this.signal.aborted) await leases.report(fence, { given_away: false }).catch(() => false);
    await this.close();
  }

  /** Ends the session and waits until what was received is stored. */
  async close(): Promise<void> {
    this.closing.abort();
    const { session } = this;
    if (session !== undefined) await this.stop(session);
    while (this.pending > 0) await pause(DRAIN_LOOK_MS);
  }

  /** The connection is no more: nobody goes on from here. */
  async forget(): Promise<void> {
    await this.close();
    await this.deps.leases.forget(this.taken.fence);
  }

  token(refused?: string): Promise<string> {
    return this.deps.token(this.connection, refused);
  }

  get full(): boolean {
    return this.waiting_bytes > LINK_BYTES || this.deps.store.waiting_bytes > ALL_BYTES;
  }

  async drained(): Promise<void> {
    while (this.full && !this.signal.aborted) await pause(DRAIN_LOOK_MS, this.signal);
  }

  deliver(received: Received): Promise<void> {
    this.heard(received.alive_at ?? received.received_at);
    const outcome = this.normalised(received);
    const { vendor } = this.adapter;
    // Without what was parsed: until it is stored, every collection of garbage would carry those objects along.
    const { text, received_at, age_ms } = received;
    const waits: Received = { text, received_at, age_ms };
    const item = this.deps.store.item(vendor, this.connection, this.taken.fence, waits, outcome);
    return item === null ? NOTHING_TO_STORE : this.store(item);
  }

  status(status: LinkStatus, detail?: string): void {
    this.shown = status;
    this.report({ status, detail: detail?.slice(0, MOST_DETAIL) ?? null });
  }

  /** Its owner must log in at the vendor again; a reason that the vendor gave is kept. */
  flag(): void {
    if (this.shown !== 'reconnect_required')
      this.status('reconnect_required', 'Its owner must log in at the vendor again.');
  }

  keep(state: Json): void {
    this.state = state;
    this.report({ state });
  }

  missed(gap: { from: number | null; to: number; detail: string }): void {
    const { vendor } = this.adapter;
    this.deps.missed.inc(1, { vendor });
    this.report({ missed: gap });
    const facts = {
      vendor,
      connection_id: this.connection.connection_id,
      detail: gap.detail,
      from: gap.from,
      to: gap.to,
    };
    this.deps.log.warn(facts, 'a vendor may have said something while it was not listened to');
  }

  get handed_over(): boolean {
    return performance.now() < this.read_on_until;
  }

  private readOnUntil(given_away_ms_ago: number): number {
    return performance.now() + this.reads_on_ms - given_away_ms_ago;
  }

  /** The shorter time counts: whether the process before stops or goes on is not told. */
  private get reads_on_ms(): number {
    const { handover_ms, stop_handover_ms } = this.deps.timings;
    return Math.min(handover_ms, stop_handover_ms);
  }

  /** When the vendor was last heard, by this process or the one before; Unix milliseconds. */
  get last_heard(): number | null {
    return Math.max(this.heard_at, this.taken.heard_at ?? 0) || null;
  }

  /** The vendor was heard, whatever it said. */
  heard(at: number): void {
    this.heard_at = at;
    if (at - this.noted_at < HEARD_EVERY_MS) return;
    this.noted_at = at;
    this.report({ heard_at: at });
  }

  private async open(): Promise<Session> {
    const { adapter } = this;
    const open = () => (this.state === null ? adapter.connect(this) : adapter.resume(this, this.state));
    if (this.tried) return adapter.opening ? adapter.opening.use(open) : open();
    this.tried = true;
    try {
      return await open();
    } finally {
      this.endFirstTry();
    }
  }

  /** One session; answers how long to wait before the next, where somebody has said so. */
  private async holdSession(): Promise<number | undefined> {
    const { adapter, deps } = this;
    const facts = { vendor: adapter.vendor, connection_id: this.connection.connection_id };
    try {
      this.status('connecting');
      const session = await this.open();
      this.session = session;
      this.read_on_until = 0;
      deps.sessions.inc(1, { vendor: adapter.vendor });
      if (this.shown === 'connecting') this.status('connected');
      const closed = new Promise<void>((end) => this.signal.addEventListener('abort', () => end(), { once: true }));
      if (!this.signal.aborted) await Promise.race([session.ended, closed]);
      return undefined;
    } catch (error) {
      if (this.signal.aborted) return undefined;
      if (error instanceof ConnectionRefused) {
        this.status('reconnect_required', `The vendor refuses the connection: ${error.reason}.`);
        deps.log.warn(
          { ...facts, reason: error.reason },
          'a connection is refused by its vendor until it is made anew',
        );
        await deps.refused(this.connection, error.reason).catch((failure: unknown) => {
          deps.log.warn({ ...facts, err: failure }, 'a refused connection could not be flagged; it is tried again');
        });
        return deps.timings.refused_ms;
      }
      // Who asks for no pause at all is not called again and again.
      const least_ms = deps.timings.retry.first_ms;
      const asked_ms = error instanceof PauseAsked ? Math.max(error.pause_ms, least_ms) : undefined;
      this.status('retrying', (error as Error).message);
      const level = error instanceof LinkLost || error instanceof PauseAsked ? 'info' : 'warn';
      deps.log[level]({ ...facts, err: error, failures: this.backoff.failures + 1 }, 'a connection to a vendor ended');
      return asked_ms;
    } finally {
      if (this.session) await this.stop(this.session);
      this.session = undefined;
    }
  }

  private async store(item: Item): Promise<void> {
    const { received } = item;
    this.pending += 1;
    this.waiting_bytes += item.bytes;
    try {
      if (!this.replaced && (await this.deps.store.add(item)) === 'stored') return;
      this.replaced = true;
      if (await this.isMineAlone(received)) await this.deps.store.add({ ...item, unfenced: true });
    } catch (error) {
      const facts = { vendor: item.vendor, connection_id: this.connection.connection_id, err: error };
      this.deps.log.error(facts, 'what a vendor said was not stored: the process ends');
    } finally {
      this.pending -= 1;
      this.waiting_bytes -= item.bytes;
    }
  }

  private async stop(session: Session): Promise<void> {
    await this.adapter.stop(session).catch((error: unknown) => {
      this.deps.log.warn({ err: error, vendor: this.adapter.vendor }, 'a connection to a vendor ended impolitely');
    });
  }

  private normalised(received: Received): Outcome {
    try {
      return this.adapter.normalise(received, this.connection);
    } catch (error) {
      // It met what nobody foresaw: that is a dead letter, not an outage.
      this.deps.log.error({ vendor: this.adapter.vendor, err: error }, 'the normaliser of a vendor failed');
      return park('normaliser_failed', error instanceof Error ? error.message : 'unknown error');
    }
  }

  /** Waits until the successor says from where on it receives. */
  private async isMineAlone(received: Received): Promise<boolean> {
    const { adapter } = this;
    if (!adapter.beforeSuccessor) return false;
    this.successor ??= this.successorState();
    const state = await this.successor;
    return state === undefined || adapter.beforeSuccessor(received, state, this.state);
  }

  /** Undefined when it does not come up in time: then it has received nothing. */
  private async successorState(): Promise<Json | undefined> {
    const give_up_at = performance.now() + this.deps.timings.handover_ms;
    while (performance.now() < give_up_at) {
      const found = await this.deps.leases.successor(this.taken.fence).catch(() => UNKNOWN);
      if (found.state !== undefined) return found.state;
      await pause(this.deps.timings.look_ms);
    }
    return undefined;
  }

  /** A link that is closed would report without a pause, for as long as the database is away. */
  private reportAgain(): void {
    if (!this.signal.aborted) this.report({});
  }

  private report(report: LinkReport): void {
    const sent = (this.unwritten = { ...this.unwritten, ...report });
    this.deps.leases.report(this.taken.fence, sent).then(
      (written) => {
        if (this.unwritten === sent) this.unwritten = {};
        if (!written) this.replaced = true;
      },
      (error: unknown) => {
        const facts = { err: error, vendor: this.adapter.vendor };
        this.deps.log.debug(facts, 'how a connection is could not be written; it is tried again');
        if (this.unwritten === sent) void pause(REPORT_AGAIN_MS, this.signal).then(() => this.reportAgain());
      },
    );
  }
}
