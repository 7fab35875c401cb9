import type { Counts } from '../../access/counts';
import { messageBucket } from '../../access/rate-buckets';
import type { Logger } from '../../engines/log/port';
import { broadcastText } from './envelopes';
import { pongFrame } from './frames';
import type { Gates } from './gates';
import { LIMITS } from './limits';
import { parseClientMessage, PONG } from './protocol';
import { clock, type Session } from './session';
import type { Subscriptions } from './subscriptions';
import type { TransientSender } from './transient';

const WINDOW_MS = 1_000;
/** No text that a client can send is answered like it: stands for a binary frame. */
const NOT_TEXT = '';

export interface MessagesDeps {
  subscriptions: Subscriptions;
  gates: Gates;
  transient: Pick<TransientSender, 'publish'>;
  counts: Pick<Counts, 'pace'>;
  log: Logger;
}

/**
 * Works on what clients send: one message of a session at a time, in order, and at most 200 a second. What is beyond
 * that waits here, no more than was read of the socket at once, and the socket is read again when it is its turn.
 * Source: spec doc3 §4.1, "Client messages".
 */
export class Messages {
  constructor(private readonly deps: MessagesDeps) {}

  /** One data frame (whole, fragments joined). */
  received(session: Session, data: Buffer, is_binary: boolean): void {
    session.last_seen = clock();
    if (!session.open) return;
    const message = data.length > LIMITS.frame_bytes ? null : is_binary ? NOT_TEXT : data.toString('utf8');
    if (!session.working && session.inbox === null && this.mayAnswer(session)) return this.handle(session, message);
    (session.inbox ??= []).push(message);
    session.ws.pause();
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

  /** `null` is a message that is too large. */
  private handle(session: Session, text: string | null): void {
    if (text === null) return session.error('MESSAGE_TOO_LARGE');
    const message = parseClientMessage(text);
    if (message === null) return session.error('INVALID_FORMAT');
    switch (message.type) {
      case 'ping':
        return session.send(PONG);
      case 'unsubscribe':
        return this.deps.subscriptions.unsubscribe(session, message.channel);
      case 'subscribe':
        return this.alone(session, () => this.deps.subscriptions.subscribe(session, message.channel, message.since));
      case 'broadcast':
        return this.alone(session, () => this.broadcast(session, message.channel, message.payload));
    }
  }

  /**
   * Keeps later messages of the session waiting until `work` is done. It costs the caller a unit, and waits until that
   * is there.
   */
  private alone(session: Session, work: () => Promise<void>): void {
    session.working = true;
    this.paid(session)
      .then(() => (session.open ? work() : undefined))
      .catch((error: unknown) =>
        this.deps.log.error({ err: error, session: session.id }, 'a client message could not be worked on'),
      )
      .then(() => {
        session.working = false;
        this.goOn(session);
      })
      .catch((error: unknown) =>
        this.deps.log.error({ err: error, session: session.id }, 'waiting client messages were lost'),
      );
  }

  /** Never as long as a session may be silent: each socket of the caller waits for one unit at a time. */
  private async paid(session: Session): Promise<void> {
    const wait_ms = await this.deps.counts.pace(messageBucket(session.caller));
    if (wait_ms === 0 || !session.open) return;
    session.ws.pause();
    await new Promise((resolve) => setTimeout(resolve, wait_ms).unref());
  }

  private async broadcast(session: Session, channel: string, payload: string): Promise<void> {
    const verdict = await this.deps.gates.mayWrite(session.caller, channel);
    if (verdict !== 'ok') return session.error(verdict, channel);
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
