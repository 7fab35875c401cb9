import { randomBytes } from 'node:crypto';

export interface FakeGrant {
  /** The vendor's id of the channel whose token it is; null for one of the app. */
  owner: string | null;
  scopes: readonly string[];
  access_token: string;
  refresh_token: string;
  /** Unix milliseconds. */
  expires_at: number;
}

/** The tokens that a vendor's fake gave out: refreshed ones rotate, as the vendors do it. */
export class FakeTokens {
  private readonly by_access = new Map<string, FakeGrant>();
  private readonly by_refresh = new Map<string, FakeGrant>();
  private readonly codes = new Map<string, Pick<FakeGrant, 'owner' | 'scopes'>>();
  /** How often tokens were refreshed. */
  refreshes = 0;

  constructor(private readonly vendor: string) {}

  give(owner: string | null, scopes: readonly string[] = [], lifetime_ms = 4 * 3_600_000): FakeGrant {
    const text = () => `${this.vendor}-${randomBytes(16).toString('hex')}`;
    const expires_at = Date.now() + lifetime_ms;
    const grant = { owner, scopes, access_token: text(), refresh_token: text(), expires_at };
    this.by_access.set(grant.access_token, grant);
    this.by_refresh.set(grant.refresh_token, grant);
    return grant;
  }

  /** A token that the test chose; it lives for a day. */
  accept(access_token: string, owner: string | null): void {
    const expires_at = Date.now() + 86_400_000;
    this.by_access.set(access_token, { owner, scopes: [], access_token, refresh_token: '', expires_at });
  }

  /** The code that an authorize page would hand back. */
  code(owner: string, scopes: readonly string[] = []): string {
    const code = randomBytes(12).toString('hex');
    this.codes.set(code, { owner, scopes });
    return code;
  }

  /** Null: the code is unknown or was used. */
  exchange(code: string): FakeGrant | null {
    const granted = this.codes.get(code);
    this.codes.delete(code);
    return granted === undefined ? null : this.give(granted.owner, granted.scopes);
  }

  /** Null: the refresh token is unknown, used or revoked. */
  refresh(refresh_token: string): FakeGrant | null {
    const old = this.by_refresh.get(refresh_token);
    if (old === undefined) return null;
    this.refreshes += 1;
    this.by_refresh.delete(refresh_token);
    this.by_access.delete(old.access_token);
    return this.give(old.owner, old.scopes);
  }

  /** Of an `Authorization` header with any scheme; null when it is none of ours, or over. */
  of(header: string | undefined): FakeGrant | null {
    const grant = this.by_access.get(/^\w+ (.+)$/.exec(header ?? '')?.[1] ?? '');
    return grant === undefined || grant.expires_at < Date.now() ? null : grant;
  }

  /** All that a person has consented to; null when they hold no token. */
  scopesOf(owner: string): ReadonlySet<string> | null {
    const own = [...this.by_access.values()].filter((grant) => grant.owner === owner);
    return own.length === 0 ? null : new Set(own.flatMap(({ scopes }) => scopes));
  }

  /** The access token is refused from now on; its refresh token goes on. */
  expire(access_token: string): void {
    this.by_access.delete(access_token);
  }

  /** The person, or with null the app, took all consents back. */
  revokeAll(owner: string | null): void {
    for (const grants of [this.by_access, this.by_refresh])
      for (const [token, grant] of grants) if (grant.owner === owner) grants.delete(token);
  }
}
