/**
 * Kick does not deliver some event types of a channel. An app may have 1,000 subscriptions, 10,000 once Kick has
 * verified it.
 */
export class SubscriptionsRefused extends Error {
  constructor(
    readonly events: readonly string[],
    reason: string,
  ) {
    super(`Kick refuses ${events.join(', ')}: ${reason}`);
    this.name = 'SubscriptionsRefused';
  }
}

/** Subscriptions to a channel's events at Kick, made and ended with a token of that channel. */
export interface KickSubscriptions {
  /**
   * Makes the missing ones. `note` gets null before Kick is asked for new ones, and the ids of all afterwards, also
   * when Kick refuses some of them. @throws SubscriptionsRefused, HttpFailed (401 for a refused token), NotSent,
   * OutcomeUnknown
   */
  ensure(token: string, note: (ids: string[] | null) => Promise<void>): Promise<void>;
  /** Ends all of the channel. Throws as {@link KickSubscriptions.ensure} does. */
  end(token: string): Promise<void>;
}

/** A channel and what is on air there, as Kick's API has it. */
export interface KickChannel {
  broadcaster_user_id: number | string;
  slug?: string | null;
  stream_title?: string | null;
  category?: { name?: string | null } | null;
  stream?: {
    is_live: boolean;
    /** The year 1 while nothing is on air. */
    start_time?: string | null;
    viewer_count?: number | null;
    custom_tags?: string[] | null;
  } | null;
}

/** Kick's channels. Every call throws as `HttpClient.ask`. */
export interface KickChannels {
  /** At most 50; those that are not there are left out. */
  channels(broadcaster_user_ids: readonly string[], token: string): Promise<KickChannel[]>;
}
