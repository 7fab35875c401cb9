import type { ErrorCode } from './channels';
import type { OpenSocket } from './socket';

export interface ClientOptions {
  /** `wss://api.example/v1/ws`. */
  url: string;
  /**
   * Provides the token of one attempt; called for each. Absent or null: anonymous. An error counts as a failed attempt,
   * and a {@link Refused} as a refusal by the server.
   */
  token?(): string | null | Promise<string | null>;
  /** Opens the socket. Default: the runtime's own WebSocket, with the token in the query. */
  open?: OpenSocket;
  timing?: Partial<Timing>;
  /**
   * Repeating timer for pings. Default: `setInterval`, which browsers slow down to once a minute in pages hidden for
   * five minutes: a page that must stay connected passes the timer of a Worker.
   */
  every?: Every;
  /** From 0 to below 1, for jitter. Default: `Math.random`. */
  random?(): number;
}

/** A repeating timer: calls `tick` each `ms` milliseconds. @returns a function that stops it */
export type Every = (ms: number, tick: () => void) => () => void;

/** Times in milliseconds. */
export interface Timing {
  /** The first wait between two attempts is between this and twice that. Default 1,000. */
  first_ms: number;
  /** Longest wait between two attempts. Default 30,000. */
  most_ms: number;
  /**
   * Age at which a connection is stable: the waits restart, and an earlier refusal no longer counts. Default 10,000.
   */
  stable_ms: number;
  /** Interval of pings. The server closes a connection that is silent for 30 s. Default 10,000. */
  ping_ms: number;
  /** Longest wait for the token, for `welcome`, and for the answer to a ping. Default 10,000. */
  patience_ms: number;
}

export const TIMING: Timing = {
  first_ms: 1_000,
  most_ms: 30_000,
  stable_ms: 10_000,
  ping_ms: 10_000,
  patience_ms: 10_000,
};

export type ClientState =
  /** An attempt is under way. */
  | 'connecting'
  /** `welcome` was received. */
  | 'open'
  /** Waiting for the next attempt. */
  | 'waiting'
  /** Ended, by `close` or because the server refused for good. */
  | 'stopped';

/**
 * A problem: an error code of the server, `LOST` for a connection, or `TOKEN_FAILED` for a token that was not provided.
 */
export interface Problem {
  code: ErrorCode | 'FORBIDDEN' | 'LOST' | 'TOKEN_FAILED';
  message: string;
  channel?: string;
}

/** Thrown by `token` when a further call would not help soon; counts like the server's `UNAUTHORIZED`. */
export class Refused extends Error {}

export interface SubscribeOptions {
  /** Id of the last message received before, for example in an earlier run; later messages are sent first. */
  since?: string;
  /**
   * Called each time the server accepts the subscription. `recovered` is false when messages since the last one were
   * lost.
   */
  onSubscribed?(accepted: { recovered: boolean }): void;
  /** Called once, when the channel ends although nobody closed the subscription. */
  onEnded?(problem: Problem): void;
}

export interface Subscription {
  readonly channel: string;
  /** Id of the last message received; null before the first, and on channels whose messages have no id. */
  readonly last_id: string | null;
  /** Ends the subscription; delivers nothing afterwards. */
  close(): void;
}
