import { LRUCache } from 'lru-cache';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { Emote, EmotePlatform, EmoteProvider, EmoteSource } from '../../vendors/emotes/port';
import { HttpFailed } from '../../vendors/http/port';

export interface EmoteSet {
  provider: EmoteProvider;
  emotes: Emote[];
}

/** Emotes of channels. */
export interface ChannelEmotes {
  /** Sets with emotes; the set of a provider that fails is an older one, or left out. */
  of(platform: EmotePlatform, channel_id: string): Promise<EmoteSet[]>;
}

/** Time for which a set is fresh. */
const FRESH_MS = 600_000;
const MAX_BYTES = 32 << 20;
/** Channel of sets that belong to all channels. */
const ALL = '';

/** Sets in memory; one fetch of a set runs at a time. */
export function createChannelEmotes(sources: readonly EmoteSource[]): ChannelEmotes {
  const by_provider = new Map(sources.map((source) => [source.provider, source]));
  const kept = new LRUCache<string, Emote[]>({
    ttl: FRESH_MS,
    maxSize: MAX_BYTES,
    sizeCalculation: (emotes, key) => key.length + 100 + JSON.stringify(emotes).length * 2,
    ignoreFetchAbort: true,
    allowStaleOnFetchRejection: true,
    noDeleteOnFetchRejection: true,
    noDeleteOnStaleGet: true,
    fetchMethod(key) {
      const [provider, platform, channel_id] = key.split(' ') as [EmoteProvider, EmotePlatform, string];
      const source = by_provider.get(provider)!;
      return channel_id === ALL ? source.global!() : source.channel!(platform, channel_id);
    },
  });

  async function emotesOf(key: string): Promise<Emote[]> {
    try {
      return (await kept.fetch(key)) ?? [];
    } catch (error) {
      const is_vendors = [HttpFailed, NotSent, OutcomeUnknown].some((kind) => error instanceof kind);
      if (is_vendors) return [];
      throw error;
    }
  }

  return {
    async of(platform, channel_id) {
      const asked = sources.flatMap((source) => [
        ...(source.channel && source.platforms.includes(platform)
          ? [{ provider: source.provider, key: `${source.provider} ${platform} ${channel_id}` }]
          : []),
        ...(source.global ? [{ provider: source.provider, key: `${source.provider} ${platform} ${ALL}` }] : []),
      ]);
      const sets = new Map<EmoteProvider, Emote[]>();
      const found = await Promise.all(
        asked.map(async ({ provider, key }) => ({ provider, emotes: await emotesOf(key) })),
      );
      for (const { provider, emotes } of found) sets.set(provider, [...(sets.get(provider) ?? []), ...emotes]);
      return [...sets].flatMap(([provider, emotes]) => (emotes.length === 0 ? [] : [{ provider, emotes }]));
    },
  };
}
