/** A track, or an episode in its form: the show stands for the album. */
export interface PlayedItem {
  type: string;
  /** Null for the listener's own files. */
  id: string | null;
  name: string;
  artists: { id: string | null; name: string }[];
  album: {
    id: string | null;
    name: string;
    images: { url: string; width: number | null; height: number | null }[];
  } | null;
  duration_ms: number;
  explicit: boolean;
  uri: string;
  url: string | null;
}

export interface PlayerDevice {
  id: string | null;
  name: string;
  type: string;
  volume_percent: number | null;
}

/** State of the player, without members that are never used. */
export interface PlayerState {
  /** Null for an advertisement, and in a private session. */
  item: PlayedItem | null;
  is_playing: boolean;
  progress_ms: number | null;
  currently_playing_type: string;
  device: PlayerDevice | null;
}

/** Spotify's player. */
export interface SpotifyPlayer {
  /**
   * Null while nothing is played anywhere.
   * @throws HttpFailed for another answer; NotSent and OutcomeUnknown when there is none
   */
  state(token: string): Promise<PlayerState | null>;
}
