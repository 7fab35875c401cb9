/** An emote of a provider; `url` is https, or null where the provider names no address. */
export interface Emote {
  id: string;
  name: string;
  url: string | null;
  animated: boolean;
}
export type EmoteProvider = 'twitch' | '7tv' | 'bttv' | 'ffz' | 'discord' | 'youtube' | 'trovo';

/** Platforms whose channels have emotes; a channel of Discord is a server. */
export type EmotePlatform = 'twitch' | 'youtube' | 'kick' | 'trovo' | 'discord';

/** Emotes of one provider; each call throws as `HttpClient.ask`. */
export interface EmoteSource {
  readonly provider: EmoteProvider;
  /** Absent where the provider has no emotes of channels. */
  readonly channels?: {
    readonly platforms: readonly EmotePlatform[];
    /** Empty where the provider does not know the channel. */
    emotes(platform: EmotePlatform, channel_id: string): Promise<Emote[]>;
  };
  /** Emotes for all channels of the platforms. Absent without any. */
  readonly global?: {
    readonly platforms: readonly EmotePlatform[];
    emotes(): Promise<Emote[]>;
  };
}

/** Picture of a badge of a chat, by the words of the platform: `subscriber`, `12`. */
export interface BadgePicture {
  kind: string;
  id: string;
  /** https, or null where the platform names no address. */
  image_url: string | null;
}

/** Badges of one platform; each call throws as `HttpClient.ask`. */
export interface BadgeSource {
  readonly platform: EmotePlatform;
  channel(channel_id: string): Promise<BadgePicture[]>;
  /** Badges of all channels; a channel's own of the same kind and id counts instead. */
  global(): Promise<BadgePicture[]>;
}
