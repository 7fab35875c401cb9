import type { RateLimiter } from '../../../access/limits/rate-limiter';
import { messageBucket } from '../../../access/limits/rate-buckets';
import { isWithinJsonBounds } from '../../../lib/json/bounds';
import { broadcastText } from '../relay/envelopes';
import { pongFrame } from '../delivery/frames';
import type { ChannelAuthorizers } from './gates';
import { CLOSE, LIMITS } from './limits';
import type { RealtimeMetrics } from '../session/metrics';
import { parseClientMessage, PONG, type SocketErrorCode } from './protocol';
import { clock, type Session } from '../session/session';
import type { SocketFailures } from '../session/socket-failures';
import type { Subscriptions } from '../session/subscriptions';
import type { TransientSender } from '../relay/transient';

const WINDOW_MS = 1_000;
/** No text that a client can send is answered like it: stands for a binary frame. */
const NOT_TEXT = '';
/** The heartbeat of a client, in any spelling: recognised without a parse. */
const BARE_PING = /^\s*\{\s*"type"\s*:\s*"ping"\s*\}\s*$/;
const LONGEST_BARE_PING = 32;

export interface MessagesDeps {
  subscriptions: Subscriptions;
  gates: ChannelAuthorizers;
  transient: Pick<TransientSender, 'publish'>;
  counts: Pick<RateLimiter, 'pace'>;
  metrics: Pick<RealtimeMetrics, 'closed'>;
  failed: SocketFailures;
}

/**
 * Works on what clients send: one message of a session at a time, in order, and at most 200 a second. What is beyond
 * that waits here, a few small messages or what was read of the socket at once, and the socket is read again when it is
 * its turn.
 * Source: spec doc3 §4.1, "Client messages".
 */
export class Messages {
  constructor(private readonly deps: MessagesDeps) {}

  /** Takes a data frame (whole, fragments joined). */
  received(session: Session, data: Buffer, is_binary: boolean): void {
    session.last_seen = clock();
    if (!session.open) return;
    const message = data.length > LIMITS.frame_bytes ? null : is_binary ? NOT_TEXT : data.toString('utf8');
    if (!session.working && session.inbox === null && this.mayAnswer(session)) return this.handle(session, message);
    const inbox = (session.inbox ??= []);
    inbox.push(message);
    // A client that leaves is noticed at once while its socket is read.
    if (inbox.length >= LIMITS.inbox_messages || data.length > LIMITS.inbox_message_bytes) session.ws.pause();
    if (!session.working) this.goOnLater(session);
  }

  /** A Ping control frame. Of those that came too fast the last is answered, as RFC 6455 §5.5.3 allows. */
  pinged(session: Session, data: Buffer): void {
    session.last_seen = clock();
    if (!session.open) return;
    if (session.ping === null && this.mayAnswer(session)) return session.sendFrame(pongFrame(data));
    session.ping = Buffer.from(data);
    this.goOnLater(session);
  }

  private mayAnswer(session: Session): boolean {
    const now = clock();
    if (now - session.window_start >= WINDOW_MS) {
      session.window_start = now;
      session.window_count = 0;
    }
    if (session.window_count >= LIMITS.client_messages_per_second) return false;
    session.window_count += 1;
    return true;
  }

  /** A client that floods is read more slowly, not refused: its own socket holds what waits. */
  private goOnLater(session: Session): void {
    session.ws.pause();
    if (session.waits_for_window) return;
    session.waits_for_window = true;
    const wait_ms = Math.max(1, session.window_start + WINDOW_MS + 1 - clock());
    setTimeout(() => {
      session.waits_for_window = false;
      this.goOn(session);
    }, wait_ms).unref();
  }

  private goOn(session: Session): void {
    while (session.open && !session.working) {
      if (session.ping === null && session.inbox === null) break;
      if (!this.mayAnswer(session)) return this.goOnLater(session);
      if (session.ping !== null) {
        const { ping } = session;
        session.ping = null;
        session.sendFrame(pongFrame(ping));
      } else {
        const message = session.inbox!.shift()!;
        if (session.inbox!.length === 0) session.inbox = null;
        this.handle(session, message);
      }
    }
    if (!session.open) session.inbox = null;
    else if (session.inbox === null) session.ws.resume();
  }

  /** Takes the price of a message before its text is parsed. `null` is a message that is too large. */
  private handle(session: Session, text: string | null): void {
    const wait = this.isFreePing(session, text) ? null : this.pay(session, 1);
    if (wait !== null)
      return this.alone(
        session,
        wait.then(() => (session.open ? this.act(session, text) : null)),
      );
    const work = this.act(session, text);
    if (work !== null) this.alone(session, work);
  }

  /** A client's heartbeat must not wait for units, or crowds behind one address would take each other for dead. */
  private isFreePing(session: Session, text: string | null): boolean {
    if (text === null || text.length > LONGEST_BARE_PING || !BARE_PING.test(text)) return false;
    const now = clock();
    if (now < session.free_ping_at) return false;
    session.free_ping_at = now + LIMITS.free_ping_ms;
    return true;
  }

  /** Null when the message was answered at once. */
  private act(session: Session, text: string | null): Promise<void> | null {
    if (text === null) return this.refuse(session, 'MESSAGE_TOO_LARGE');
    const message = parseClientMessage(text);
    if (message === null) return this.refuse(session, 'INVALID_FORMAT');
    session.refused_in_a_row = 0;
    switch (message.type) {
      case 'ping':
        session.send(PONG);
        return null;
      case 'unsubscribe':
        this.deps.subscriptions.unsubscribe(session, message.channel);
        return null;
      case 'subscribe':
        return this.deps.subscriptions.subscribe(session, message.channel, message.since);
      case 'broadcast':
        return this.broadcast(session, message.channel, message.payload);
    }
  }

  /** Refused messages cost more than valid ones, and a socket that sends nothing else is closed. */
  private refuse(session: Session, code: SocketErrorCode): Promise<void> | null {
    session.refused_in_a_row += 1;
    if (session.refused_in_a_row < LIMITS.refused_in_a_row) {
      session.error(code);
      return this.pay(session, LIMITS.refused_units - 1);
    }
    this.end(session, code, code);
    return null;
  }

  private end(session: Session, reason: string, error?: SocketErrorCode): void {
    this.deps.metrics.closed.inc(1, { code: String(CLOSE.refused) });
    session.close(CLOSE.refused, reason, error);
  }

  /** Keeps later messages of the session waiting until `work` is done. */
  private alone(session: Session, work: Promise<unknown>): void {
    session.working = true;
    work
      .catch((error: unknown) =>
        this.deps.failed({ err: error, session: session.id }, 'a client message could not be worked on'),
      )
      .then(() => {
        session.working = false;
        this.goOn(session);
      })
      .catch((error: unknown) =>
        this.deps.failed({ err: error, session: session.id }, 'waiting client messages were lost'),
      );
  }

  /**
   * Takes units of the caller and waits until they are there; null where nothing is counted. Never as long as a session
   * may be silent.
   */
  private pay(session: Session, units: number): Promise<void> | null {
    const pace = this.deps.counts.pace(messageBucket(session.caller), units);
    return pace && pace.then((wait_ms) => this.waited(session, wait_ms));
  }

  private async waited(session: Session, wait_ms: number): Promise<void> {
    if (wait_ms === 0 || !session.open) return;
    if (session.refused_in_a_row > 0 && wait_ms > LIMITS.refused_wait_ms)
      return this.end(session, 'RATE_LIMIT_EXCEEDED');
    await new Promise((resolve) => setTimeout(resolve, wait_ms).unref());
  }

  private async broadcast(session: Session, channel: string, payload: string): Promise<void> {
    const verdict = await this.deps.gates.mayWrite(session.caller, channel);
    if (verdict !== 'ok') return session.error(verdict, channel);
    if (!isWithinJsonBounds(payload, LIMITS.payload_bounds)) return session.error('INVALID_FORMAT', channel);
    let parsed: unknown;
    try {
      parsed = JSON.parse(payload);
    } catch {
      return session.error('INVALID_FORMAT', channel);
    }
    const dropped = await this.deps.transient.publish(channel, broadcastText(channel, payload, parsed));
    // Small enough as it came: its type is there twice when it goes out.
    if (dropped === 'too_large') session.error('MESSAGE_TOO_LARGE', channel);
  }
}
