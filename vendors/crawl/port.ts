/** A channel's profile as its platform shows it to everybody. */
export interface ShownProfile {
  platform_channel_id: string;
  /** Null where the platform reports none. */
  bio: string | null;
  broadcaster_type: string | null;
}

/** A channel as its platform shows it to everybody. */
export interface ShownChannel extends ShownProfile {
  handle: string;
  display_name: string;
  broadcast: ShownBroadcast | null;
}

export interface ShownBroadcast {
  /** Null where the platform gives a broadcast no id. */
  broadcast_id: string | null;
  title: string | null;
  category: string | null;
  viewer_count: number;
  /** As the platform writes it. */
  started_at: string | null;
}

/** App at a platform. */
export interface CrawlApp {
  client_id: string;
  client_secret: string;
}

/** Reads channels without a token of a person. */
export interface ChannelCrawl {
  /** Handles or ids per call. */
  readonly most: number;
  /** Unknown handles are left out. Null where the quota has no units for the call. Throws as `HttpClient.ask`. */
  read(handles: readonly string[], app: CrawlApp): Promise<ShownChannel[] | null>;
  /** Profiles by the channels' ids; otherwise as `read`. */
  profiles(ids: readonly string[], app: CrawlApp): Promise<ShownProfile[] | null>;
}
