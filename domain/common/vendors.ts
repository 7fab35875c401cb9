/**
 * The outside services Lumio speaks with. Slugs are the vendors' own; nothing else in the project spells them. Source:
 * spec INDEX, "Neutral word to vendor".
 */
export const SERVICE = 'lumio';

/** Streaming platforms: each has channels, and its events go to the event log. */
export const PLATFORMS = ['twitch', 'youtube', 'kick', 'trovo'] as const;
export type Platform = (typeof PLATFORMS)[number];
export const isPlatform = (slug: string): slug is Platform => (PLATFORMS as readonly string[]).includes(slug);

/** Vendors of an account's channels: the streaming platforms and its music. Source: spec extra-facts §13. */
export const CHANNEL_PLATFORMS = [...PLATFORMS, 'spotify'] as const;
export type ChannelPlatform = (typeof CHANNEL_PLATFORMS)[number];

/** Where an account connects a bot: of Discord it is the server that the bot was let into. */
export const BOT_PLATFORMS = [...PLATFORMS, 'discord'] as const;
export type BotPlatform = (typeof BOT_PLATFORMS)[number];

/**
 * Platforms that give a webhook up after a few tries within minutes. Shopify, Stripe and PayPal go on for days; YouTube
 * is looked at and read without its webhooks.
 */
export const DELIVERED_ONCE = ['kick', 'trovo'] as const satisfies readonly Platform[];

/** Every vendor whose events, payments or state reach Lumio. */
export const VENDORS = [...PLATFORMS, 'spotify', 'shopify', 'stripe', 'paypal', 'streamelements', 'discord'] as const;
export type Vendor = (typeof VENDORS)[number];

export function isVendor(slug: string): slug is Vendor {
  return (VENDORS as readonly string[]).includes(slug);
}
