import type { OAuthApp } from '../oauth/port';
import type { CallsLeft } from './limit';

/** A frame of an EventSub socket. */
export interface EventSubFrame {
  /** As received. */
  text: string;
  /** Parsed; undefined when it is no JSON. */
  value: unknown;
  /** `notification`, `revocation`, …; empty where it is none of Twitch's. */
  message_type: string;
  /** Unix milliseconds, by our clock. */
  received_at: number;
  /** Time of receipt, or of sending for a frame that waited while this session was paused. */
  alive_at: number;
  /** Age by Twitch's clock, less the time that it waited for this session; undefined when it does not say. */
  age_ms: number | undefined;
}

export interface EventSubListener {
  /** Notifications, revocations and what is not known here, in the order of arrival. */
  onFrame(frame: EventSubFrame): void;
  /** Any frame, keepalives among them; `at` as {@link EventSubFrame.alive_at}. */
  onAlive(at: number): void;
  /** Whether the backlog forbids further reads of a former socket. Default: never. */
  full?(): boolean;
}

/** A session of EventSub over WebSocket, through all the sockets that Twitch moves it to. */
export interface EventSubSession {
  /** From the last welcome: it may change when Twitch moves the session. */
  readonly session_id: string;
  /** Time by Twitch's clock, from its last welcome. RFC 3339. */
  now(): string;
  /** Rejects with {@link EventSubEnded} when it is over; resolves after `close`. */
  readonly ended: Promise<void>;
  /** No more frames are read until `resume`. */
  pause(): void;
  resume(): void;
  /** Frames that were sent before Twitch heard of it come still, until it resolves. */
  close(): Promise<void>;
}

/** The session is over; its subscriptions are gone, and nothing is sent again. */
export class EventSubEnded extends Error {
  /** @param code close code of the socket, 0 where it was not closed by Twitch */
  constructor(
    message: string,
    readonly code = 0,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'EventSubEnded';
  }
}

/** Credentials of calls: a user's access token, and the app that obtained it. */
export interface TwitchLogin {
  token: string;
  client_id: string;
}

export interface SubscriptionRequest {
  type: string;
  version: string;
  condition: Readonly<Record<string, string>>;
  session_id: string;
}

export type SubscriptionAnswer =
  | {
      kind: 'made';
      /** By Twitch's clock, RFC 3339; null when it does not say. */
      created_at: string | null;
      /** Of the app's points; null when it does not say. */
      cost: { total: number; most: number } | null;
      /** State of the user's bucket of calls; null when Twitch does not say. */
      left: CallsLeft | null;
    }
  /** Missing scope, bad condition, too many, no such type: the same would be refused again. */
  | { kind: 'refused'; status: number; message: string }
  /** The token is not taken (any more). */
  | { kind: 'unauthorised' }
  /** The bucket of calls is empty, or the user has too many sockets, until then: Unix milliseconds. */
  | { kind: 'limited'; until: number };

/** Twitch's validation of a token. */
export interface ValidatedToken {
  client_id: string;
  user_id: string;
}

/** Twitch, as the adapter speaks with it. */
export interface Twitch {
  /** Opens a session. @throws EventSubEnded when there is no welcome */
  open(listener: EventSubListener, signal: AbortSignal): Promise<EventSubSession>;
  /** @throws what the calls to the outside throw, when Twitch did not answer */
  subscribe(login: TwitchLogin, request: SubscriptionRequest, signal: AbortSignal): Promise<SubscriptionAnswer>;
  /** Null when the token is not taken. @throws what the calls to the outside throw, when Twitch did not say */
  validate(token: string): Promise<ValidatedToken | null>;
  /**
   * `data` of a GET of Helix. Null when Twitch refuses it (scope, limit): then it cannot be said.
   * @throws what the calls to the outside throw, when Twitch did not answer
   */
  get(login: TwitchLogin, path: string, query: Readonly<Record<string, string>>): Promise<readonly unknown[] | null>;
}

/** A stream that is live, as Twitch's API has it. */
export interface TwitchStream {
  id: string;
  user_id: string;
  title?: string | null;
  game_name?: string | null;
  tags?: string[] | null;
  viewer_count: number;
  started_at: string;
}

/** Figures of streams and channels. Every call throws as `HttpClient.ask`. */
export interface TwitchStreams {
  /** Of at most 100 users those who are live. */
  live(user_ids: readonly string[], by: TwitchLogin): Promise<TwitchStream[]>;
  followers(broadcaster_id: string, by: TwitchLogin): Promise<number>;
}

/** Subscriptions of an app that outlive every socket, with shards that receive their notifications. */
export interface Conduit {
  id: string;
  shard_count: number;
}

export interface ConduitShard {
  id: string;
  /** False when its socket has ended, or none was ever assigned. */
  enabled: boolean;
  /** Of the socket that it was last assigned to. */
  session_id: string | null;
  /** End of that socket by Twitch's clock, Unix milliseconds. */
  disconnected_at: number | null;
}

export interface ConduitSubscription {
  id: string;
  type: string;
  condition: Readonly<Record<string, unknown>>;
  /** Null for subscriptions over another transport. */
  conduit_id: string | null;
  enabled: boolean;
  /** By Twitch's clock, RFC 3339. */
  created_at: string | null;
}

export interface ConduitSubscriptionRequest {
  type: string;
  version: string;
  condition: Readonly<Record<string, string>>;
  conduit_id: string;
}

export type ConduitSubscriptionAnswer =
  | {
      kind: 'made';
      id: string;
      /** By Twitch's clock, RFC 3339; null when it does not say. */
      created_at: string | null;
      /** State of the app's bucket of calls; null when Twitch does not say. */
      left: CallsLeft | null;
    }
  /** Made before; its id is listed by {@link TwitchConduits.subscriptions}. */
  | { kind: 'exists' }
  /** Missing consent, bad condition, too many, no such conduit. */
  | { kind: 'refused'; status: number; message: string }
  /** The app's bucket of calls is empty until then: Unix milliseconds. */
  | { kind: 'limited'; until: number };

/**
 * Conduits of EventSub, by the app's own token. Calls throw what calls to the outside throw; `false` and null mean that
 * Twitch does not know the conduit.
 */
export interface TwitchConduits {
  list(app: OAuthApp): Promise<readonly Conduit[]>;
  make(app: OAuthApp, shard_count: number): Promise<Conduit>;
  /** Ends it with all its subscriptions; succeeds for an unknown one. */
  remove(app: OAuthApp, conduit_id: string): Promise<void>;
  resize(app: OAuthApp, conduit: Conduit): Promise<boolean>;
  shards(app: OAuthApp, conduit_id: string): Promise<readonly ConduitShard[] | null>;
  /** Lets a shard receive over the socket of a session; its former socket receives nothing more. */
  assign(
    app: OAuthApp,
    asked: { conduit_id: string; shard: string; session_id: string },
    signal: AbortSignal,
  ): Promise<boolean>;
  subscribe(
    app: OAuthApp,
    request: ConduitSubscriptionRequest,
    signal: AbortSignal,
  ): Promise<ConduitSubscriptionAnswer>;
  /** A page of at most 100 subscriptions. `user_id`: only those whose condition names that user. */
  subscriptions(
    app: OAuthApp,
    asked: { after?: string; user_id?: string },
  ): Promise<{ subscriptions: readonly ConduitSubscription[]; after: string | null }>;
  /** Succeeds for an unknown id. */
  unsubscribe(app: OAuthApp, id: string): Promise<void>;
}
