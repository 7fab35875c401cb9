import type { WebSocket } from 'ws';

/** A channel as Trovo's API has it; counts and times are numbers or texts. */
export interface TrovoChannel {
  is_live: boolean;
  live_title?: string | null;
  category_name?: string | null;
  current_viewers?: string | number | null;
  followers?: string | number | null;
  /** Unix seconds; 0 while it is not live. */
  started_at?: string | number | null;
}

/**
 * Trovo's Open API as far as chat and live state need it. `client_id` names the app, without which nobody is answered.
 * Every call throws as `HttpClient.ask`.
 */
export interface TrovoOpenApi {
  /** Opens the chat of the token's own channel; it is good for 20 seconds. */
  ownChatToken(client_id: string, token: string): Promise<string>;
  /** Chat token of any channel, without a token of the channel's own. */
  channelChatToken(client_id: string, channel_id: string): Promise<string>;
  channel(client_id: string, channel_id: string): Promise<TrovoChannel>;
  /** A socket that is being opened. @throws NotSent for an address that our rules refuse */
  chat(): WebSocket;
}
