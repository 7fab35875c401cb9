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
  /** The same, or when Twitch sent it, where it waited while this session was paused. */
  alive_at: number;
  /** Age by Twitch's clock, less the time that it waited for this session; undefined when it does not say. */
  age_ms: number | undefined;
}

export interface EventSubListener {
  /** Notifications, revocations and what is not known here, in the order of arrival. */
  onFrame(frame: EventSubFrame): void;
  /** Any frame, keepalives among them; `at` as {@link EventSubFrame.alive_at}. */
  onAlive(at: number): void;
  /** Whether so much waits that no more should be read of a socket that is left. Default: never. */
  full?(): boolean;
}

/** A session of EventSub over WebSocket, through all the sockets that Twitch moves it to. */
export interface EventSubSession {
  /** From the last welcome: it may change when Twitch moves the session. */
  readonly session_id: string;
  /** By Twitch's clock, as its last welcome told it. RFC 3339. */
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

/** Whose calls they are: a user's access token, and the app that it was given to. */
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
    }
  /** Missing scope, bad condition, too many, no such type: the same would be refused again. */
  | { kind: 'refused'; status: number; message: string }
  /** The token is not taken (any more). */
  | { kind: 'unauthorised' }
  /** The bucket of calls is empty, or the user has too many sockets, until then: Unix milliseconds. */
  | { kind: 'limited'; until: number };

/** What Twitch says of a token. */
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
