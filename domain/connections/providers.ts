import type { Vendor } from '../common/vendors';

/** Purposes of a connection to a provider: a person's login, an account's channel, an account's bot. */
export const CONNECTION_KINDS = ['login', 'channel', 'bot'] as const;
export type ConnectionKind = (typeof CONNECTION_KINDS)[number];

/** A provider, and what it is connected for; one that is only integrated is connected for none of it. */
interface Provider {
  slug: Vendor;
  kinds: readonly ConnectionKind[];
}

/**
 * Providers of logins and connections, each under a master switch `platform:<slug>` and one for each kind. Providers
 * that are only integrated (the shop, the tip service) have flags of their own category. Source: spec extra-facts §13
 * and §26.
 */
export const PROVIDERS: readonly Provider[] = [
  { slug: 'twitch', kinds: ['login', 'channel', 'bot'] },
  { slug: 'youtube', kinds: ['login', 'channel', 'bot'] },
  { slug: 'kick', kinds: ['login', 'channel', 'bot'] },
  { slug: 'trovo', kinds: ['login', 'channel', 'bot'] },
  { slug: 'discord', kinds: ['login', 'bot'] },
  { slug: 'spotify', kinds: ['channel'] },
];

/** Slug of the provider's logins. */
export const loginOfProvider = (slug: Vendor): string => (slug === 'youtube' ? 'google' : slug);

/** The flags of one kind of connection, the master switch first. */
export const switchesOf = (slug: string, kind: ConnectionKind): readonly string[] => [
  `platform:${slug}`,
  `platform:${slug}:${kind}`,
];
