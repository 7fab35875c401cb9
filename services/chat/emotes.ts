import type { Logger } from '../../engines/log/port';
import type {
  BadgePicture,
  BadgeSource,
  Emote,
  EmotePlatform,
  EmoteProvider,
  EmoteSource,
} from '../../vendors/emotes/port';
import { RememberedSets } from './remembered-sets';

export interface EmoteSet {
  provider: EmoteProvider;
  emotes: Emote[];
}

/** Emotes and badges of a channel as far as they are in memory. */
export interface KnownPictures {
  /** False as long as nothing is known. */
  readonly any: boolean;
  emote(name: string): ProvidedEmote | undefined;
  /** Null where no picture is known. */
  badge(kind: string, id: string | null): string | null;
}
export type ProvidedEmote = Emote & { provider: EmoteProvider };

/** Emotes and badges of channels. */
export interface ChannelEmotes {
  /** Sets with emotes; the set of a provider that fails is an older one, or left out. */
  of(platform: EmotePlatform, channel_id: string): Promise<EmoteSet[]>;
  /** Badges of a channel and of all channels; empty where the platform shows none. */
  badges(platform: EmotePlatform, channel_id: string): Promise<BadgePicture[]>;
  /** Answers at once, from memory; what is absent or old is fetched meanwhile. */
  known(platform: EmotePlatform, channel_id: string): KnownPictures;
}

/** Emotes and badges of a process together take at most 32 MiB. */
const EMOTE_BYTES = 28 << 20;
const BADGE_BYTES = 4 << 20;
/** Channel of sets that belong to all channels. */
const ALL = '';

export interface ChannelEmotesDeps {
  emotes: readonly EmoteSource[];
  badges: readonly BadgeSource[];
  log: Logger;
}

/** {@link ChannelEmotes} over the vendors, in memory. */
export function createChannelEmotes({ emotes: sources, badges: badge_sources, log }: ChannelEmotesDeps): ChannelEmotes {
  const by_provider = new Map(sources.map((source) => [source.provider, source]));
  const by_platform = new Map(badge_sources.map((source) => [source.platform, source]));
  const emotes = new RememberedSets<ProvidedEmote>({
    max_bytes: EMOTE_BYTES,
    nameOf: ({ name }) => name,
    async fetch(key) {
      const [provider, platform, channel_id] = key.split(' ') as [EmoteProvider, EmotePlatform, string];
      const { channels, global } = by_provider.get(provider)!;
      const found = channel_id === ALL ? await global!.emotes() : await channels!.emotes(platform, channel_id);
      return found.map((emote) => ({ ...emote, provider }));
    },
    log,
  });
  const badges = new RememberedSets<BadgePicture>({
    max_bytes: BADGE_BYTES,
    nameOf: ({ kind, id }) => badgeKey(kind, id),
    fetch(key) {
      const [platform, channel_id] = key.split(' ') as [EmotePlatform, string];
      const source = by_platform.get(platform)!;
      return channel_id === ALL ? source.global() : source.channel(channel_id);
    },
    log,
  });

  /** Keys of the sets of a channel, in the order in which a name counts. */
  const setsOf = (platform: EmotePlatform, channel_id: string): string[] => [
    ...sources.flatMap(({ provider, channels }) =>
      channels?.platforms.includes(platform) ? [`${provider} ${platform} ${channel_id}`] : [],
    ),
    ...sources.flatMap(({ provider, global }) =>
      // One set for all platforms.
      global?.platforms.includes(platform) ? [`${provider} ${global.platforms[0]!} ${ALL}`] : [],
    ),
  ];
  const badgeSetsOf = (platform: EmotePlatform, channel_id: string): string[] =>
    by_platform.has(platform) ? [`${platform} ${channel_id}`, `${platform} ${ALL}`] : [];

  return {
    async of(platform, channel_id) {
      const sets = new Map<EmoteProvider, Emote[]>();
      const found = await Promise.all(setsOf(platform, channel_id).map((key) => emotes.read(key)));
      for (const { provider, ...emote } of found.flat()) {
        const set = sets.get(provider);
        if (set) set.push(emote);
        else sets.set(provider, [emote]);
      }
      return [...sets].map(([provider, all]) => ({ provider, emotes: all }));
    },
    async badges(platform, channel_id) {
      const found = await Promise.all(badgeSetsOf(platform, channel_id).map((key) => badges.read(key)));
      const first = new Map<string, BadgePicture>();
      for (const badge of found.flat()) {
        const key = badgeKey(badge.kind, badge.id);
        if (!first.has(key)) first.set(key, badge);
      }
      return [...first.values()];
    },
    known(platform, channel_id) {
      const names = setsOf(platform, channel_id).map((key) => emotes.known(key));
      const pictures = badgeSetsOf(platform, channel_id).map((key) => badges.known(key));
      return {
        any: [...names, ...pictures].some(({ size }) => size > 0),
        emote: (name) => firstOf(names, name),
        badge: (kind, id) => firstOf(pictures, badgeKey(kind, id))?.image_url ?? null,
      };
    },
  };
}

const badgeKey = (kind: string, id: string | null): string => `${kind}/${id ?? ''}`;

function firstOf<T>(sets: readonly ReadonlyMap<string, T>[], name: string): T | undefined {
  for (const set of sets) {
    const found = set.get(name);
    if (found !== undefined) return found;
  }
  return undefined;
}
