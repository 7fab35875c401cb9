import type { Platform } from '../domain/vendors';

/** An account that a channel or shop is connected to, as webhooks need it. */
export interface ConnectedAccount {
  account_id: string;
  /** Signing secret stored on the connection (shops have one each); null when it has none. */
  secret: string | null;
  /** Subscriptions that deliver the channel's events to this account; null where they are not known. */
  subscriptions: readonly string[] | null;
}

/**
 * Finds the accounts behind a channel or shop. A lookup that cannot be made rejects; it never answers "none" for "do
 * not know". Spec doc3 §4.2 rule 2.
 */
export interface ConnectionLookup {
  /**
   * By the vendor's own channel id, exactly as stored; several accounts may have connected one channel. Empty when none
   * has.
   */
  byChannel(platform: Platform, platform_channel_id: string): Promise<readonly ConnectedAccount[]>;
  /** The same as it is stored now, past every cache. */
  readByChannel(platform: Platform, platform_channel_id: string): Promise<readonly ConnectedAccount[]>;
  /** By normalised shop host (`name.myshopify.com`, lower case), exact match; null when there is none. */
  byShopDomain(shop_domain: string): Promise<ConnectedAccount | null>;
}
