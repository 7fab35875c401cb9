/** Identity of a person at a login provider, from the provider itself. */
export interface ProviderIdentity {
  /** Its own id of the person; never changes. */
  provider_id: string;
  username: string | null;
  display_name: string | null;
  avatar_url: string | null;
  email: string | null;
  scopes: readonly string[];
  /** The app that the token was given to; absent where calls need not name it. */
  client_id?: string;
  /** When the access token ends, Unix milliseconds; null where the provider does not say. */
  expires_at: number | null;
}

/** The provider does not know the token, or it was given to another app: whoever brings it is nobody. */
export class TokenRefused extends Error {
  override readonly name = 'TokenRefused';
}

/** The provider did not answer; nothing is known of the token. */
export class ProviderUnavailable extends Error {
  constructor(
    provider: string,
    readonly retry_after_ms?: number,
    options?: ErrorOptions,
  ) {
    super(`${provider} cannot say whose token it is`, options);
    this.name = 'ProviderAway';
  }
}

/** Asks one provider whose an access token is. */
export interface IdentityProvider {
  /**
   * @throws TokenRefused for a token that is malformed, has ended, or belongs to another app
   * @throws ProviderAway when the provider did not answer
   */
  identify(access_token: string): Promise<ProviderIdentity>;
}
