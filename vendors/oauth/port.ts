/** Purpose of a grant; a system bot is the installation's own. */
export type GrantKind = 'channel' | 'bot' | 'system_bot';

/** An app at a vendor, registered by an operator or by an account's own people. */
export interface OAuthApp {
  client_id: string;
  client_secret: string;
}

/** Vendor's answer to a code or a refresh token. */
export interface OAuthGrant {
  access_token: string;
  /** Null where the vendor gave none with this answer: an earlier one stays good. */
  refresh_token: string | null;
  /** Unix milliseconds; null where the vendor does not say. */
  expires_at: number | null;
  /** Null where the vendor omits them: then the requested ones hold. */
  scopes: readonly string[] | null;
}

/** Owner of a grant, from the vendor. */
export interface GrantOwner {
  /** The channel's, the user's or the guild's id there. */
  platform_user_id: string;
  username: string | null;
  display_name: string | null;
  avatar_url: string | null;
}

/** The vendor refuses the code or the refresh token for good: somebody must log in there again. */
export class GrantRefused extends Error {
  override readonly name = 'GrantRefused';
}

/** The vendor does not know our app, or its secret is wrong. */
export class AppRefused extends Error {
  override readonly name = 'AppRefused';
}

/** The vendor did not answer; nothing is known. */
export class VendorUnavailable extends Error {
  override readonly name = 'VendorAway';
  constructor(
    vendor: string,
    readonly retry_after_ms?: number,
    options?: ErrorOptions,
  ) {
    super(`${vendor} does not answer`, options);
  }
}

/** OAuth at one vendor. Each call throws {@link GrantRefused}, {@link AppRefused} or {@link VendorUnavailable}. */
export interface OAuthVendor {
  /** Kinds of connections that begin with a login there. */
  readonly kinds: readonly GrantKind[];
  scopes(kind: GrantKind): readonly string[];
  /** Where a person's browser is sent. `challenge` is the PKCE challenge, S256. */
  authorizeUrl(asked: {
    app: OAuthApp;
    kind: GrantKind;
    redirect_uri: string;
    state: string;
    challenge: string;
  }): string;
  /** Redeems a code and returns the grant with its owner. */
  exchange(asked: {
    app: OAuthApp;
    kind: GrantKind;
    redirect_uri: string;
    code: string;
    verifier: string;
  }): Promise<{ grant: OAuthGrant; owner: GrantOwner }>;
  refresh(app: OAuthApp, refresh_token: string): Promise<OAuthGrant>;
  /** Whether a revoked token ends all that the person has given this app. */
  readonly revoke_ends_all?: boolean;
  /**
   * Ends the subscriptions that the app of this token has made to the channel's events. Absent where subscriptions end
   * with the connection that they were made over.
   * @throws HttpFailed, NotSent, OutcomeUnknown
   */
  endSubscriptions?(access_token: string): Promise<void>;
  /** Makes the tokens useless; asked again it succeeds. Absent where the vendor has no such call. */
  revoke?(app: OAuthApp, tokens: { access_token: string; refresh_token: string | null }): Promise<void>;
}
