import type { Logger } from '../engines/log/port';
import type { Relay } from '../engines/relay/port';
import { broadcastText } from './envelopes';
import type { Gates } from './gates';
import { LIMITS } from './limits';
import { parseClientMessage, PONG } from './protocol';
import type { Session } from './session';
import type { Subscriptions } from './subscriptions';

/** The relay topic of messages that are not stored: `{"channel", "message"}`, `message` being the whole server message as text. */
export const LIVE_TOPIC = 'live';
/** Client messages that may wait behind one being worked on before the socket is not read any more. */
const INBOX = 64;

/** Works on what clients send: one message of a session at a time, in order. Source: spec doc3 §4.1, "Client messages". */
export class Messages {
  constructor(private readonly deps: { subscriptions: Subscriptions; gates: Gates; relay: Relay; log: Logger }) {}

  /** One data frame (whole, fragments joined). */
  received(session: Session, data: Buffer, is_binary: boolean): void {
    const now = Date.now();
    session.last_seen = now;
    if (!session.open) return;
    this.throttle(session, now);
    if (data.length > LIMITS.frame_bytes) return session.error('MESSAGE_TOO_LARGE');
    if (is_binary) return session.error('INVALID_FORMAT');
    const text = data.toString('utf8');
    if (session.inbox === null) return this.handle(session, text);
    session.inbox.push(text);
    if (session.inbox.length >= INBOX) session.ws.pause();
  }

  /** A client that floods is read more slowly, not refused: its own socket holds what waits. */
  private throttle(session: Session, now: number): void {
    if (now - session.window_start >= 1_000) {
      session.window_start = now;
      session.window_count = 0;
    }
    session.window_count += 1;
    if (session.window_count !== LIMITS.client_messages_per_second) return;
    session.ws.pause();
    setTimeout(() => this.resume(session), session.window_start + 1_010 - now).unref();
  }

  private resume(session: Session): void {
    const flooding = session.window_count >= LIMITS.client_messages_per_second;
    if (flooding && Date.now() - session.window_start < 1_000) return; // its timer resumes it
    if (session.open && (session.inbox === null || session.inbox.length < INBOX)) session.ws.resume();
  }

  private handle(session: Session, text: string): void {
    const message = parseClientMessage(text);
    if (message === null) return session.error('INVALID_FORMAT');
    switch (message.type) {
      case 'ping':
        return session.send(PONG);
      case 'unsubscribe':
        return this.deps.subscriptions.unsubscribe(session, message.channel);
      case 'subscribe':
        return this.alone(session, this.deps.subscriptions.subscribe(session, message.channel, message.since));
      case 'broadcast':
        return this.alone(session, this.broadcast(session, message.channel, message.payload));
    }
  }

  /** Keeps later messages of the session waiting until `work` is done. */
  private alone(session: Session, work: Promise<void>): void {
    session.inbox = [];
    work
      .catch((error: unknown) =>
        this.deps.log.error({ err: error, session: session.id }, 'a client message could not be worked on'),
      )
      .finally(() => {
        const waiting = session.inbox ?? [];
        session.inbox = null;
        while (waiting.length > 0 && session.inbox === null && session.open) this.handle(session, waiting.shift()!);
        if (session.inbox !== null) (session.inbox as string[]).push(...waiting);
        this.resume(session);
      })
      .catch((error: unknown) =>
        this.deps.log.error({ err: error, session: session.id }, 'waiting client messages were lost'),
      );
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
    await this.deps.relay.publish(
      LIVE_TOPIC,
      JSON.stringify({ channel, message: broadcastText(channel, payload, parsed) }),
    );
  }
}
