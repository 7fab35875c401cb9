import { type Caller, endsWith, stillGrants } from '../../access/caller';
import type { CallerResolver } from '../../access/resolve';
import { concernsAll, type Revocation } from '../../access/revocations';
import type { Logger } from '../../engines/log/port';
import type { Gates, Verdict } from './gates';
import type { Hub } from './hub';
import { CLOSE, LIMITS } from './limits';
import type { RealtimeMetrics } from './metrics';
import type { Session } from './session';

/** How long a client may be silent, and how long a socket may take nothing, in milliseconds. */
export interface Windows {
  silence_ms: number;
  stall_ms: number;
  /** Between comparisons of presence. */
  compare_ms?: number;
}

export interface HeartbeatDeps {
  sessions: ReadonlyMap<string, Session>;
  hub: Hub;
  gates: Gates;
  again: CallerResolver['again'];
  log: Logger;
  metrics: RealtimeMetrics;
  windows?: Windows | undefined;
}

const TICK_MS = 1_000;
/** Every session is revalidated once per 30 s; the work is spread over that many ticks. */
const SHARES = LIMITS.revalidate_ms / LIMITS.heartbeat_ms;
const CONCURRENT_CHECKS = 8;
/** Longer than an upgrade may take: a credential revoked while its socket was being opened is found here. */
const RECENT_MS = 30_000;

/**
 * One ticker for all sessions: silence, stalls, expiry, revalidation. Source: spec doc3 §4.1 "Heartbeat", rulings
 * "socket closes", c21.
 */
export class Heartbeat {
  private readonly timer: NodeJS.Timeout;
  private ticks = 0;
  private share = 0;
  private checking = false;
  private judging = false;
  /** Features changed that open channels were not judged by yet. */
  private unjudged = false;
  private readonly cut_at = new Map<Session, number>();
  private readonly recent = new Map<string, number>();

  private readonly windows: Windows;

  constructor(private readonly deps: HeartbeatDeps) {
    this.windows = deps.windows ?? LIMITS;
    this.timer = setInterval(() => this.tick(), TICK_MS);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    const now = Date.now();
    this.ticks += 1;
    this.watchBlocked(now);
    for (const session of this.deps.sessions.values()) {
      if (session.closing) continue;
      // What a client says while we do not read it is not its silence.
      if (session.ws.isPaused) session.last_seen = now;
      if (session.caller.expires_at !== null && session.caller.expires_at <= now) {
        this.end(session, 'TOKEN_EXPIRED');
      } else if (now - session.last_seen >= this.windows.silence_ms) {
        this.deps.metrics.closed.inc(1, { code: String(CLOSE.silence) });
        session.close(CLOSE.silence, 'SILENT');
      }
    }
    if (this.ticks % (LIMITS.heartbeat_ms / TICK_MS) !== 0) return;
    this.deps.hub.sweep(now);
    for (const [id, at] of this.recent) if (now - at > RECENT_MS) this.recent.delete(id);
    this.deps.metrics.publish(this.deps.hub.blocked);
    if (this.unjudged) void this.judgeFeatures();
    this.share = (this.share + 1) % SHARES;
    void this.revalidate([...this.deps.sessions.values()].filter((session) => session.number % SHARES === this.share));
  }

  /**
   * Sockets that did not take everything: slow ones lose channels, stuck ones are closed and, two ticks later,
   * destroyed.
   */
  private watchBlocked(now: number): void {
    for (const session of this.deps.hub.blocked) {
      if (!session.blocked) {
        this.deps.hub.blocked.delete(session);
        continue;
      }
      const stalled = session.stalledFor(now);
      if (stalled >= this.windows.stall_ms && !session.closing) {
        this.deps.metrics.closed.inc(1, { code: String(CLOSE.stalled) });
        session.cut();
      } else if (stalled >= LIMITS.grace_ms && !session.closing) {
        this.deps.hub.room.dropLaggards(session);
      }
      if (session.closing && stalled >= LIMITS.grace_ms) this.destroyLater(session, now);
    }
    for (const [session, at] of this.cut_at) {
      if (now < at) continue;
      this.cut_at.delete(session);
      session.socket.destroy();
    }
  }

  private destroyLater(session: Session, now: number): void {
    if (!this.cut_at.has(session)) this.cut_at.set(session, now + 2 * TICK_MS);
  }

  private end(session: Session, code: 'TOKEN_EXPIRED' | 'TOKEN_REVOKED'): void {
    this.deps.metrics.closed.inc(1, { code: String(CLOSE.token) });
    session.close(CLOSE.token, code, code);
  }

  /** Acts on a revocation: a credential named is cut at once, the others are asked about. */
  revoked(revocation: Revocation): void {
    const { credential_id, user_id, account_id } = revocation;
    if (concernsAll(revocation)) return void this.judgeFeatures();
    if (credential_id) this.recent.set(credential_id, Date.now());
    const asked: Session[] = [];
    for (const session of this.deps.sessions.values()) {
      const { caller } = session;
      if (credential_id) {
        if (endsWith(caller, credential_id)) this.end(session, 'TOKEN_REVOKED');
      } else if (user_id ? actsFor(caller, user_id, account_id) : account_id && touches(session, account_id)) {
        asked.push(session);
      }
    }
    if (asked.length > 0) void this.check(asked);
  }

  /**
   * Everybody's features may have changed: sockets lose the channels of those that are off, anonymous ones too.
   * Credentials have not changed, so none is asked about. What changes meanwhile, or cannot be judged, is judged again.
   */
  private async judgeFeatures(): Promise<void> {
    this.unjudged = true;
    if (this.judging) return;
    this.judging = true;
    let failure: Error | null = null;
    while (this.unjudged && failure === null) {
      this.unjudged = false;
      failure = await this.judgeAll();
    }
    this.judging = false;
    if (failure === null) return;
    this.unjudged = true;
    this.deps.log.warn({ err: failure }, 'channels of open sockets cannot be judged; the next beat tries again');
  }

  /** A few sockets at a time, up to the first failure, which it answers. */
  private async judgeAll(): Promise<Error | null> {
    const work = [...this.deps.sessions.values()].values();
    let failure: Error | null = null;
    const worker = async (): Promise<void> => {
      for (const session of work) {
        if (failure !== null) return;
        if (session.closing) continue;
        try {
          await this.judge(session, (channel) => this.deps.gates.mayRead(session.caller, channel));
        } catch (error) {
          failure = error as Error;
        }
      }
    };
    await Promise.all(Array.from({ length: CONCURRENT_CHECKS }, worker));
    return failure;
  }

  /** Ends the subscriptions that are not allowed any more. */
  private async judge(session: Session, mayRead: (channel: string) => Promise<Verdict>): Promise<void> {
    for (const subscription of [...session.subscriptions]) {
      const verdict = await mayRead(subscription.channel.name);
      if (verdict === 'ok' || subscription.state === 'ended') continue;
      this.deps.hub.leave(subscription);
      session.error(verdict, subscription.channel.name);
    }
  }

  /** Looks a new session over: its credential may have been revoked between the check at the door and now. */
  admitted(session: Session): void {
    const { credential_id, ends_with = [] } = session.caller;
    const gone = [credential_id, ...ends_with].some((id) => id !== null && this.recent.has(id));
    if (gone) this.end(session, 'TOKEN_REVOKED');
  }

  private async revalidate(sessions: Session[]): Promise<void> {
    if (this.checking) return; // the database is slow: the next beat tries again
    this.checking = true;
    try {
      await this.check(sessions);
    } finally {
      this.checking = false;
    }
  }

  /** Asks once per credential, a few at a time. A check that fails for our own reasons cuts nobody. */
  private async check(sessions: readonly Session[]): Promise<void> {
    const groups = new Map<string, Session[]>();
    for (const session of sessions) {
      const { kind, credential_id, account_id, client } = session.caller;
      if (kind === 'anonymous' || session.closing) continue;
      // Tokens of one grant may reach less far than it does.
      const key = `${kind} ${credential_id} ${account_id} ${client?.scopes.join(' ') ?? ''}`;
      const group = groups.get(key);
      if (group) group.push(session);
      else groups.set(key, [session]);
    }
    const work = groups.values();
    const worker = async (): Promise<void> => {
      for (const group of work) {
        try {
          await this.settle(group);
        } catch (error) {
          this.deps.log.warn(
            { err: error },
            'credentials of open sockets cannot be checked; the next beat tries again',
          );
        }
      }
    };
    await Promise.all(Array.from({ length: Math.min(CONCURRENT_CHECKS, groups.size) }, worker));
  }

  /**
   * Judges each socket of one credential by what the credential grants now. A socket that holds more than that ends,
   * and its client comes back with what it has; the others go on as what the credential is now, and lose the channels
   * that this no longer opens.
   */
  private async settle(group: readonly Session[]): Promise<void> {
    const looked = await this.deps.again(group[0]!.caller, Date.now());
    const { caller: now } = looked;
    if (now === null) {
      const code = looked.failure === 'TOKEN_EXPIRED' ? 'TOKEN_EXPIRED' : 'TOKEN_REVOKED';
      for (const session of group) this.end(session, code);
      return;
    }
    // Sockets opened at one time share their caller: each distinct one is judged once, and each channel asked about
    // once.
    const successors = new Map<Caller, Caller | null>();
    const successor = (held: Caller): Caller | null => {
      let next = successors.get(held);
      if (next === undefined) {
        next = stillGrants(now, held) ? { ...now, expires_at: held.expires_at } : null;
        successors.set(held, next);
      }
      return next;
    };
    const verdicts = new Map<string, Promise<Verdict>>();
    const mayRead = (channel: string): Promise<Verdict> => {
      let verdict = verdicts.get(channel);
      if (!verdict) verdicts.set(channel, (verdict = this.deps.gates.mayRead(now, channel)));
      return verdict;
    };
    for (const session of group) {
      const caller = successor(session.caller);
      if (caller === null) {
        this.end(session, 'TOKEN_REVOKED');
        continue;
      }
      session.caller = caller;
      await this.judge(session, mayRead);
    }
  }
}

/** Whether a change of the user's concerns the caller; a popout token may hang on a member that it does not act for. */
function actsFor(caller: Caller, user_id: string, account_id: string | null): boolean {
  return caller.user_id === user_id || (caller.kind === 'popout' && caller.account_id === account_id);
}

/** Whether a change of the account concerns the session: it acts there, or listens to one of its channels. */
function touches(session: Session, account_id: string): boolean {
  if (session.caller.account_id === account_id) return true;
  return session.subscriptions.some((subscription) => subscription.channel.name.includes(account_id));
}
