import { grantsAlike, type Caller } from '../../../access/authentication/caller';
import type { CallerResolver } from '../../../access/authentication/resolve';
import type { Logger } from '../../../engines/log/port';
import type { ChannelAuthorizers, Verdict } from '../channel/gates';
import type { Hub } from '../delivery/hub';
import { LIMITS } from '../channel/limits';
import type { Session } from './session';

export interface RevalidationDeps {
  sessions: ReadonlyMap<string, Session>;
  hub: Hub;
  gates: ChannelAuthorizers;
  revalidate: CallerResolver['revalidate'];
  /** Ends a session with the error, and the close that belongs to it. */
  end(session: Session, code: 'TOKEN_EXPIRED' | 'TOKEN_REVOKED'): void;
  log: Logger;
}

/** Sockets of one credential, and how many beats ago the first of them was looked at. */
interface Group {
  sessions: Session[];
  age: number;
}

/** Whether a credential acts on another account or resource than before. Without an account it acts on none. */
const actsElsewhere = (now: Caller, held: Caller): boolean =>
  now.bound_channel !== held.bound_channel ||
  (now.account_id !== held.account_id && now.account_id !== null && held.account_id !== null);

/** Beats between two looks at a credential. */
const BEATS = LIMITS.revalidate_ms / LIMITS.heartbeat_ms;
/** Credentials that one statement asks about. */
const TOGETHER = 500;

/**
 * Asks whether open sockets still may what they do: each credential once in 30 s, and at once where a revocation may
 * concern it. One statement asks about 500 credentials: those that are due are joined by the next ones, so that a node
 * with fewer asks once in 30 s, and a crowd that came at once is spread over the beats. Source: spec doc1 §5.6, §8.
 */
export class Revalidation {
  private beats = 0;
  private checking = false;
  private judging = false;
  /** Features changed that open channels were not judged by yet. */
  private unjudged = false;

  constructor(private readonly deps: RevalidationDeps) {}

  /** To be called every 5 s. */
  beat(): void {
    this.beats += 1;
    if (this.unjudged) void this.judgeFeatures();
    if (this.checking) return; // the database is slow: the next beat tries again
    this.checking = true;
    void this.check(this.next()).finally(() => (this.checking = false));
  }

  /** Looks at these now. */
  ask(sessions: readonly Session[]): void {
    void this.check([...this.grouped(sessions).values()]);
  }

  /** A session whose credential was looked at a moment ago. */
  admitted(session: Session): void {
    session.checked_at_beat = this.beats;
  }

  /** The credentials that this beat asks about: those that are due, then the oldest up to whole statements. */
  private next(): Group[] {
    const { sessions } = this.deps;
    let due = false;
    for (const session of sessions.values()) due ||= this.beats - session.checked_at_beat >= BEATS;
    if (!due && sessions.size < BEATS * TOGETHER) return [];
    const by_age: Group[][] = Array.from({ length: BEATS + 1 }, () => []);
    const groups = this.grouped(sessions.values());
    for (const group of groups.values()) by_age[Math.min(group.age, BEATS)]!.push(group);
    const oldest_first = by_age.reverse().flat();
    const even = Math.floor(groups.size / BEATS / TOGETHER);
    const needed = Math.ceil(by_age[0]!.length / TOGETHER);
    return oldest_first.slice(0, Math.max(even, needed) * TOGETHER);
  }

  private grouped(sessions: Iterable<Session>): Map<string, Group> {
    const groups = new Map<string, Group>();
    for (const session of sessions) {
      const { kind, credential_id, account_id, client } = session.caller;
      if (kind === 'anonymous' || session.closing) continue;
      // Tokens of one grant may reach less far than it does.
      const key = `${kind} ${credential_id} ${account_id} ${client?.scopes.join(' ') ?? ''}`;
      const age = this.beats - session.checked_at_beat;
      const group = groups.get(key);
      if (group === undefined) groups.set(key, { sessions: [session], age });
      else {
        group.sessions.push(session);
        group.age = Math.max(group.age, age);
      }
    }
    return groups;
  }

  /** A check that fails for our own reasons cuts nobody: those sockets are due again with the next beat. */
  private async check(groups: readonly Group[]): Promise<void> {
    for (let from = 0; from < groups.length; from += TOGETHER) {
      const outcomes = await Promise.allSettled(
        groups.slice(from, from + TOGETHER).map((group) => this.checkGroup(group)),
      );
      const failed = outcomes.find((outcome) => outcome.status === 'rejected');
      if (failed)
        this.deps.log.warn(
          { err: failed.reason },
          'credentials of open sockets cannot be checked; the next beat tries again',
        );
    }
  }

  /**
   * Judges each socket of one credential by what the credential grants now: it goes on with that, and loses the
   * channels that this no longer opens. It ends with its credential, and where that acts on another account; a caller
   * who left the account keeps it. Source: spec rulings, "rights lost while a socket is open".
   */
  private async checkGroup({ sessions }: Group): Promise<void> {
    const { caller: now, failure } = await this.deps.revalidate(sessions[0]!.caller, Date.now());
    if (now === null) {
      for (const session of sessions) this.deps.end(session, failure === 'TOKEN_EXPIRED' ? failure : 'TOKEN_REVOKED');
      return;
    }
    const verdicts = new Map<string, Promise<Verdict>>();
    const mayRead = (channel: string): Promise<Verdict> => {
      let verdict = verdicts.get(channel);
      if (!verdict) verdicts.set(channel, (verdict = this.deps.gates.mayRead(now, channel)));
      return verdict;
    };
    for (const session of sessions) {
      const { caller: held } = session;
      if (actsElsewhere(now, held)) {
        this.deps.end(session, 'TOKEN_REVOKED');
        continue;
      }
      // A caller that has not changed is kept, so that sockets go on sharing one object.
      const kept = now.account_id === held.account_id && grantsAlike(now, held);
      if (!kept) session.caller = { ...now, expires_at: held.expires_at };
      await this.judge(session, mayRead);
      session.checked_at_beat = this.beats;
    }
  }

  /**
   * Everybody's features may have changed: sockets lose the channels of those that are off, anonymous ones too.
   * Credentials have not changed, so none is asked about. What changes meanwhile, or cannot be judged, is judged again.
   */
  async judgeFeatures(): Promise<void> {
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

  /** So many sockets at a time, up to the first failure, which it answers. */
  private async judgeAll(): Promise<Error | null> {
    const sessions = [...this.deps.sessions.values()];
    for (let from = 0; from < sessions.length; from += TOGETHER) {
      const judged = sessions.slice(from, from + TOGETHER).map(async (session) => {
        if (!session.closing) await this.judge(session, (channel) => this.deps.gates.mayRead(session.caller, channel));
      });
      const failed = (await Promise.allSettled(judged)).find((outcome) => outcome.status === 'rejected');
      if (failed) return failed.reason as Error;
    }
    return null;
  }

  /** Ends the subscriptions that are not allowed any more. */
  private async judge(session: Session, mayRead: (channel: string) => Promise<Verdict>): Promise<void> {
    const subscriptions = [...session.subscriptions];
    const verdicts = await Promise.all(subscriptions.map(({ channel }) => mayRead(channel.name)));
    subscriptions.forEach((subscription, at) => {
      const verdict = verdicts[at]!;
      if (verdict === 'ok' || subscription.state === 'ended') return;
      this.deps.hub.leave(subscription);
      session.error(verdict, subscription.channel.name);
    });
  }
}
