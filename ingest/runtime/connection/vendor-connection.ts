import type { Logger } from '../../../engines/log/port';
import type { Counter } from '../../../engines/metrics/port';
import type { Json } from '../../../lib/json/json';
import { Backoff } from '../../../lib/async/retry';
import { pause } from '../../../lib/async/signal';
import { HttpFailed } from '../../../vendors/http/port';
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
import { awaitSuccessor, FormerHolder } from './link-handover';
import type { LinkLeases, LinkReport, TakenLink } from './link-leases';
import type { Item, LinkStore } from './link-store';
import type { LinkTimings } from './link-timings';
import { SuccessorCheck } from './successor-check';
import { park, type Outcome } from '../webhook/webhook';

export interface VendorConnectionDeps {
  leases: LinkLeases;
  store: LinkStore;
  /**
   * Returns a token of the connection.
   * @throws ConnectionRefused
   */
  token(connection: LinkedConnection, refused?: string): Promise<string>;
  /** Flags a connection that its owner must connect again. */
  refused(connection: LinkedConnection, reason: string): Promise<void>;
  log: Logger;
  missed: Counter;
  sessions: Counter;
  timings: LinkTimings;
  /** Moment at which this process reads no more, by `performance.now()`. Default: it does not stop. */
  stopsReadingAt?(): number;
}

/** Maximum unstored bytes of one connection, and of all connections of a process, before reading pauses. */
const LINK_BYTES = 2 << 20;
const ALL_BYTES = 64 << 20;
/** Interval at which the last sign of life is stored. */
const HEARD_EVERY_MS = 15_000;
/** Longest detail of a status, in characters: it may contain vendors' texts. */
const MAX_DETAIL = 500;
const REPORT_AGAIN_MS = 1_000;
const DRAIN_LOOK_MS = 20;
const NOTHING_TO_STORE = Promise.resolve();
const FAILED = 'The connection has failed; it is tried again.';

/** Detail for the account: other errors may contain addresses of this installation, and appear in the log alone. */
function shownOf(error: unknown): string {
  const is_for_people = error instanceof LinkLost || error instanceof PauseAsked || error instanceof HttpFailed;
  return is_for_people ? error.message : FAILED;
}

/**
 * A connection that this process holds: opened, reopened with pauses, and at the end handed over. Until the successor
 * reads from the vendor this process reads on, so that no message is lost between them; messages that both could have
 * received are stored by the successor alone. docs/architecture.md has the steps of a handover.
 */
export class VendorConnection<Session extends AdapterSession = AdapterSession> implements Link {
  private readonly closing = new AbortController();
  readonly signal = this.closing.signal;
  private readonly backoff: Backoff;
  private session: Session | undefined;
  private state: Json;
  private shown: LinkStatus = 'connecting';
  private waiting_bytes = 0;
  private pending = 0;
  private heard_at = 0;
  private reported_at = 0;
  /** Another process has taken the link: this one stores only what that successor cannot have received. */
  private replaced = false;
  private readonly successor: SuccessorCheck;
  private readonly former: FormerHolder;
  private leaving = false;
  private tried = false;
  private endFirstTry!: () => void;
  /**
   * Resolves when the first try to open the connection has ended: the constructor's caller holds the slot for that one.
   */
  readonly first_try = new Promise<void>((end) => (this.endFirstTry = end));
  /** Report that is not yet confirmed as written. */
  private pending_report: LinkReport = {};

  constructor(
    private readonly adapter: Adapter<Session>,
    readonly connection: LinkedConnection,
    private readonly taken: TakenLink,
    private readonly deps: VendorConnectionDeps,
  ) {
    this.state = taken.state;
    this.former = new FormerHolder(taken.reads_on_until);
    this.successor = new SuccessorCheck(adapter, taken.fence, deps);
    this.backoff = new Backoff(deps.timings.retry);
  }

  /** Runs until the link is closed. Never rejects. */
  async run(): Promise<void> {
    while (!this.signal.aborted) {
      const opened_at = performance.now();
      const wait_ms = await this.holdSession();
      if (performance.now() - opened_at > this.deps.timings.stable_ms) this.backoff.reset();
      if (this.leaving) this.closing.abort();
      await pause(wait_ms ?? this.backoff.next(), this.signal);
      // A new session would end that of the process that has taken the link.
      if (this.replaced) await pause(Infinity, this.signal);
    }
  }

  /**
   * Announces until when this process reads, before another process can take the link: a successor that opens it before
   * that moment has missed nothing. For a link that is not open yet, repeats the moment that its former holder
   * announced.
   * @param until end of reading, by `performance.now()`
   */
  async announce(until: number): Promise<void> {
    if (this.signal.aborted) return;
    const { leases, timings } = this.deps;
    const reads_on_until = this.session ? this.promised(until, timings) : this.former.reads_on_until;
    if (reads_on_until === null) return;
    await leases.report(this.taken.fence, { reads_on_until }).catch(() => false);
  }

  /** Reads on until a successor does, at most until that moment; resolves when nothing is left to do. */
  async handOver(until: () => number): Promise<void> {
    const { leases, timings } = this.deps;
    const { fence } = this.taken;
    this.leaving = true;
    // Without a session there is nothing to read on.
    if (this.session === undefined) this.closing.abort();
    const taken = await awaitSuccessor({ fence, leases, timings, until, signal: this.signal });
    if (!taken && !this.signal.aborted) await this.leaveState();
    await this.close();
  }

  /** Stores the state from which a later holder continues; that holder reports the gap. */
  private async leaveState(): Promise<void> {
    const { state, heard_at } = this;
    const report: LinkReport = { reads_on_until: null };
    if (state !== null) report.state = state;
    if (heard_at > 0) report.heard_at = heard_at;
    await this.deps.leases.report(this.taken.fence, report).catch(() => false);
  }

  /**
   * Moment up to which this process surely reads: a stop may cut the time short, and its last part is for messages in
   * transit.
   */
  private promised(until: number, { stop_handover_ms, read_on_ms }: LinkTimings): number {
    return Math.min(until, performance.now() + stop_handover_ms) - read_on_ms;
  }

  /** Ends the session and waits until received messages are stored. */
  async close(): Promise<void> {
    this.closing.abort();
    const { session } = this;
    if (session !== undefined) await this.stop(session);
    while (this.pending > 0) await pause(DRAIN_LOOK_MS);
  }

  /** Closes the link and deletes its state, because the connection no longer exists. */
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
    const { connection = this.connection } = received;
    const item = this.itemOf(received, connection);
    return item === null ? NOTHING_TO_STORE : this.store(item);
  }

  private itemOf(received: Received, connection: LinkedConnection): Item | null {
    const outcome = this.normalised(received, connection);
    // Drops the parsed value: until the item is stored, every garbage collection would traverse those objects.
    const { text, received_at, age_ms } = received;
    const waits: Received = { text, received_at, age_ms };
    return this.deps.store.item(this.adapter.vendor, connection, this.taken.fence, waits, outcome);
  }

  status(status: LinkStatus, detail?: string): void {
    this.shown = status;
    this.report({ status, detail: detail?.slice(0, MAX_DETAIL) ?? null });
  }

  /** Flags that the owner must log in at the vendor again; keeps an earlier reason of the vendor. */
  flag(): void {
    if (this.shown !== 'reconnect_required')
      this.status('reconnect_required', 'Its owner must log in at the vendor again.');
  }

  keep(state: Json): void {
    this.state = state;
    this.report({ state });
  }

  keepBeginning(state: Json): void {
    this.report({ beginning: state });
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

  get holding(): number {
    return this.taken.fence.token;
  }

  get handed_over(): boolean {
    return this.former.reads_on_until !== null;
  }

  /** Last sign of life from the vendor, to this process or the former one; Unix milliseconds. */
  get last_heard(): number | null {
    return Math.max(this.heard_at, this.taken.heard_at ?? 0) || null;
  }

  /** Records a sign of life from the vendor, of any kind. */
  heard(at: number): void {
    this.heard_at = at;
    if (at - this.reported_at < HEARD_EVERY_MS) return;
    this.reported_at = at;
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

  /** Runs a session; returns the pause before the next one, where the vendor requires it. */
  private async holdSession(): Promise<number | undefined> {
    const { adapter, deps } = this;
    const facts = { vendor: adapter.vendor, connection_id: this.connection.connection_id };
    try {
      this.status('connecting');
      const session = await this.open();
      this.session = session;
      this.former.forget();
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
      // A required pause of zero must not lead to a tight loop.
      const least_ms = deps.timings.retry.first_ms;
      const asked_ms = error instanceof PauseAsked ? Math.max(error.pause_ms, least_ms) : undefined;
      this.status('retrying', shownOf(error));
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
      const owner = await this.successor.ownerOf(received, this.deps.store.ending);
      if (owner === 'successor') return;
      const own = owner === 'former' ? item : this.itemOf({ ...received, ...owner }, item.connection);
      if (own !== null) await this.deps.store.add({ ...own, unfenced: true });
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

  private normalised(received: Received, connection: LinkedConnection): Outcome {
    try {
      return this.adapter.normalise(received, connection);
    } catch (error) {
      // An unforeseen payload is a dead letter, not an outage.
      this.deps.log.error({ vendor: this.adapter.vendor, err: error }, 'the normaliser of a vendor failed');
      return park('normaliser_failed', error instanceof Error ? error.message : 'unknown error');
    }
  }

  /** A closed link would report without a pause while the database is unavailable. */
  private reportAgain(): void {
    if (!this.signal.aborted) this.report({});
  }

  private report(report: LinkReport): void {
    const sent = (this.pending_report = { ...this.pending_report, ...report });
    this.deps.leases.report(this.taken.fence, sent).then(
      (written) => {
        if (this.pending_report === sent) this.pending_report = {};
        if (!written) this.replaced = true;
      },
      (error: unknown) => {
        const facts = { err: error, vendor: this.adapter.vendor };
        this.deps.log.debug(facts, 'how a connection is could not be written; it is tried again');
        if (this.pending_report === sent) void pause(REPORT_AGAIN_MS, this.signal).then(() => this.reportAgain());
      },
    );
  }
}
