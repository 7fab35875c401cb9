import type { WebSocket } from 'ws';

/** Kinds of tokens by StreamElements' names. */
export type TokenKind = 'jwt' | 'apikey';

/** The token of the dashboard is a JWT; an API key has no dots. */
export const kindOf = (token: string): TokenKind => (token.split('.').length === 3 ? 'jwt' : 'apikey');

export interface TipsPage {
  /** Unix milliseconds; older ones are left out. */
  since: number;
  offset: number;
  limit: number;
}

/** StreamElements' API and its gateway Astro, as far as tips go. Calls throw as `HttpClient.ask`. */
export interface StreamElementsApi {
  /** The channel whose the token is. */
  channel(token: string): Promise<string>;
  /** Tips of a channel, newest first. */
  tips(channel_id: string, token: string, page: TipsPage): Promise<Record<string, unknown>[]>;
  /**
   * A socket of Astro that is being opened; with a token that it gave out before, its subscriptions are there already.
   * @throws NotSent for an address that our rules refuse
   */
  socket(reconnect_token?: string): WebSocket;
}
