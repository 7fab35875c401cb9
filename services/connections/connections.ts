import type { Platform } from '../../domain/common/vendors';

/** An account with a connection to a channel or shop, as webhooks read it. */
export interface ConnectedAccount {
  account_id: string;
  /** Signing secret stored on the connection (shops have one each); null when it has none. */
  secret: string | null;
  /** Subscriptions that deliver the channel's events to this account; null where they are not known. */
  subscriptions: readonly string[] | null;
}

/**
 * Finds the accounts behind a channel or shop. A failed lookup rejects, because an empty result means "unknown
 * channel". Spec doc3 §4.2 rule 2.
 */
export interface ConnectionLookup {
  /**
   * By the vendor's own channel id, exactly as stored; several accounts may have connected one channel. Empty without
   * any.
   */
  byChannel(platform: Platform, platform_channel_id: string): Promise<readonly ConnectedAccount[]>;
  /** Reads the same from the database, bypassing every cache. */
  readByChannel(platform: Platform, platform_channel_id: string): Promise<readonly ConnectedAccount[]>;
  /** By normalised shop host (`name.myshopify.com`, lower case), exact match; null for an unknown shop. */
  byShopDomain(shop_domain: string): Promise<ConnectedAccount | null>;
}
