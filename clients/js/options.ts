import type { ErrorCode } from './channels';
import type { OpenSocket } from './socket';

export interface ClientOptions {
  /** `wss://api.example/v1/ws`. */
  url: string;
  /**
   * Makes the token of one attempt; asked anew for each. Absent, or null: nobody. What it throws counts as a failed
   * attempt, and a {@link Refused} as a refusal of the server's.
   */
  token?(): string | null | Promise<string | null>;
  /** Opens the socket. Default: the runtime's own WebSocket, with the token in the query. */
  open?: OpenSocket;
  timing?: Partial<Timing>;
  /** From 0 to below 1, for jitter. Default: `Math.random`. */
  random?(): number;
}

/** All in milliseconds. */
export interface Timing {
  /** The first wait between two attempts is between this and twice of it. Default 1,000. */
  first_ms: number;
  /** Longest wait between two attempts. Default 30,000. */
  most_ms: number;
  /**
   * A connection that has lasted so long is stable: waits begin anew, and an earlier refusal is forgotten. Default
   * 10,000.
   */
  stable_ms: number;
  /** Between pings. The server ends what is silent for 30 s. Default 10,000. */
  ping_ms: number;
  /** Longest time until the token is there, until `welcome`, and until a ping is answered. Default 10,000. */
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
  /** `welcome` has come. */
  | 'open'
  /** It waits for the next attempt. */
  | 'waiting'
  /** It is over, by `close` or because the server refused for good. */
  | 'stopped';

/**
 * What went wrong: a code of the server's, or `LOST` for a connection and `TOKEN_FAILED` for a token that was not made.
 */
export interface Problem {
  code: ErrorCode | 'FORBIDDEN' | 'LOST' | 'TOKEN_FAILED';
  message: string;
  channel?: string;
}

/** Thrown by `token` when there is no use in asking again soon: counts like `UNAUTHORIZED` of the server. */
export class Refused extends Error {}

export interface SubscribeOptions {
  /** Id of the last message seen before, of an earlier run for example: what came since is sent first. */
  since?: string;
  /** Each time that the server has accepted. `recovered` is false when messages since the last one seen are lost. */
  onSubscribed?(accepted: { recovered: boolean }): void;
  /** Once, when the channel will deliver nothing more although nobody closed the subscription. */
  onEnded?(problem: Problem): void;
}

export interface Subscription {
  readonly channel: string;
  /** Id of the last message seen; null before the first, and on channels whose messages have none. */
  readonly last_id: string | null;
  /** Ends it; nothing is delivered after. */
  close(): void;
}
