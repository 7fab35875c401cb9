import type { WebSocket } from 'ws';

/** Where the gateway is, and how many sessions may be begun still. */
export interface GatewayPlace {
  url: string;
  /** Recommended number of shards. */
  shards: number;
  remaining: number;
  /** Milliseconds until it is the whole number again. */
  reset_after_ms: number;
}

/** Discord's gateway. */
export interface DiscordGateway {
  /** @throws as `HttpClient.ask`; 401 for a token that is none */
  place(token: string): Promise<GatewayPlace>;
  /**
   * A socket that is being opened.
   * @throws NotSent for an address that is none of Discord's, wherever it was said
   */
  socket(url: string): WebSocket;
}
