import { type Caller, endsWith } from '../../../access/authentication/caller';
import type { CallerResolver } from '../../../access/authentication/resolve';
import {
  concernsAll,
  namedCredential,
  rightsChanged,
  type Revocation,
} from '../../../access/authentication/revocations';
import type { Logger } from '../../../engines/log/port';
import type { ChannelAuthorizers } from '../channel/gates';
import type { Hub } from '../delivery/hub';
import { CLOSE, LIMITS } from '../channel/limits';
import type { RealtimeMetrics } from './metrics';
import { Revalidation } from './revalidation';
import { clock, type Session } from './session';

/** How long a client may be silent, and how long a socket may take nothing, in milliseconds. */
export interface Windows {
  silence_ms: number;
  stall_ms: number;
  /** Between comparisons of presence. */
  compare_ms?: number;
  /** Time between two beats; credentials are looked at anew every six beats. */
  beat_ms?: number;
}

export interface HeartbeatDeps {
  sessions: ReadonlyMap<string, Session>;
  hub: Hub;
  gates: ChannelAuthorizers;
  revalidate: CallerResolver['revalidate'];
  log: Logger;
  metrics: RealtimeMetrics;
  windows?: Windows | undefined;
}

/** Half a second: expiry and silence are seen within a second, and so is a client that left. */
const TICKS_OF_A_BEAT = 10;
/** Time that a stalled socket has for its close frame. */
const CUT_MS = 2_000;
/** Longer than an upgrade may take: what is revoked while a socket is being opened is found here. */
const RECENT_MS = 30_000;

/**
 * Single ticker for all sessions: silence, stalls, expiry, revalidation. Source: spec doc3 §4.1 "Heartbeat", rulings
 * "socket closes", c21.
 */
export class Heartbeat {
  private readonly timer: NodeJS.Timeout;
  private ticks = 0;
  private readonly cut_at = new Map<Session, number>();
  /** Credentials, users and accounts that a revocation named, and when. */
  private readonly recent = new Map<string, number>();

  private readonly windows: Windows;
  private readonly revalidation: Revalidation;

  constructor(private readonly deps: HeartbeatDeps) {
    this.windows = deps.windows ?? LIMITS;
    this.revalidation = new Revalidation({ ...deps, end: (session, code) => this.end(session, code) });
    const { beat_ms = LIMITS.heartbeat_ms } = this.windows as Partial<Windows>;
    this.timer = setInterval(() => this.tick(), beat_ms / TICKS_OF_A_BEAT);
  }

  stop(): void {
    clearInterval(this.timer);
  }

  private tick(): void {
    const now = Date.now();
    const at = clock();
    this.ticks += 1;
    this.watchBlocked(at);
    for (const session of this.deps.sessions.values()) {
      if (session.closing) continue;
      // A client whose messages wait here or in its socket is not silent.
      if (session.working || session.ws.isPaused) session.last_seen = at;
      if (session.ws.isPaused) session.probe();
      if (session.caller.expires_at !== null && session.caller.expires_at <= now) {
        this.end(session, 'TOKEN_EXPIRED');
      } else if (at - session.last_seen >= this.windows.silence_ms) {
        this.deps.metrics.closed.inc(1, { code: String(CLOSE.silence) });
        session.close(CLOSE.silence, 'SILENT');
      }
    }
    if (this.ticks % TICKS_OF_A_BEAT !== 0) return;
    this.deps.hub.sweep(now);
    for (const [id, at] of this.recent) if (now - at > RECENT_MS) this.recent.delete(id);
    this.deps.metrics.publish(this.deps.hub.blocked);
    this.revalidation.beat();
  }

  /**
   * Sockets that did not take everything: slow ones lose channels, stuck ones are closed and later destroyed.
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
    if (!this.cut_at.has(session)) this.cut_at.set(session, now + CUT_MS);
  }

  private end(session: Session, code: 'TOKEN_EXPIRED' | 'TOKEN_REVOKED'): void {
    this.deps.metrics.closed.inc(1, { code: String(CLOSE.token) });
    session.close(CLOSE.token, code, code);
  }

  /** Acts on a revocation: a credential that ended is cut at once, the others are asked about. */
  revoked(revocation: Revocation): void {
    const { user_id, account_id } = revocation;
    if (concernsAll(revocation)) return void this.revalidation.judgeFeatures();
    const credential = namedCredential(revocation);
    for (const id of [revocation.credential_id, user_id, account_id]) if (id) this.recent.set(id, Date.now());
    const asked: Session[] = [];
    for (const session of this.deps.sessions.values()) {
      const { caller } = session;
      if (credential) {
        if (!endsWith(caller, credential.id)) continue;
        if (credential.ended) this.end(session, 'TOKEN_REVOKED');
        else asked.push(session);
      } else if (user_id ? actsFor(caller, user_id, account_id) : account_id && touches(session, account_id)) {
        asked.push(session);
      }
    }
    if (asked.length > 0) this.revalidation.ask(asked);
  }

  /** Looks a new session over: what it came in with may have been revoked between the check at the door and now. */
  admitted(session: Session): void {
    const { credential_id, user_id, account_id, ends_with = [] } = session.caller;
    const named = (id: string | null) => id !== null && this.recent.has(id);
    if ([credential_id, ...ends_with].some(named)) this.end(session, 'TOKEN_REVOKED');
    else if ([user_id, account_id, ...changesOf(session.caller)].some(named)) this.revalidation.ask([session]);
    this.revalidation.admitted(session);
  }
}

/** The names under which changed rights of the caller's credentials are announced. */
const changesOf = ({ credential_id, ends_with = [] }: Caller): (string | null)[] =>
  [credential_id, ...ends_with].flatMap((id) => (id === null ? [] : (rightsChanged(id).credential_id ?? null)));

/** Whether a change of the user's concerns the caller; a popout token may hang on a member that it does not act for. */
function actsFor(caller: Caller, user_id: string, account_id: string | null): boolean {
  return caller.user_id === user_id || (caller.kind === 'popout' && caller.account_id === account_id);
}

/** Whether a change of the account concerns the session: it acts there, or listens to one of its channels. */
function touches(session: Session, account_id: string): boolean {
  if (session.caller.account_id === account_id) return true;
  return session.subscriptions.some((subscription) => subscription.channel.name.includes(account_id));
}
