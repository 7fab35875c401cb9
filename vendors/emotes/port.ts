/** An emote of a provider; `url` is https, or null where the provider names no address. */
export interface Emote {
  id: string;
  name: string;
  url: string | null;
  animated: boolean;
}
export type EmoteProvider = 'twitch' | '7tv' | 'bttv' | 'ffz';

/** Platforms whose channels have emotes of third parties. */
export type EmotePlatform = 'twitch' | 'youtube' | 'kick' | 'trovo';

/** Emotes of one provider; each call throws as `HttpClient.ask`. */
export interface EmoteSource {
  readonly provider: EmoteProvider;
  /** The emotes of a channel; empty where the provider does not know the channel. Absent without channels. */
  channel?(platform: EmotePlatform, channel_id: string): Promise<Emote[]>;
  /** The emotes of all channels. Absent without any. */
  global?(): Promise<Emote[]>;
  /** Platforms whose channels the provider serves. */
  readonly platforms: readonly EmotePlatform[];
}
