import { z } from 'zod';
import { bodyOf } from '../http/body';
import { type HttpClient, HttpFailed } from '../http/port';
import type { OAuthApp } from './port';
import { readSeconds } from '../../lib/time/vendor-times';

const Token = z.object({ access_token: z.string(), expires_in: z.number().nullish() });

/** A token with less time than this is replaced before it is used. */
const EARLY_MS = 60_000;
/** Assumed where a vendor reports no lifetime; Twitch's tokens of apps live for some 60 days. */
const LIFETIME_S = 3_600;

/** Tokens of apps (client credentials), kept in memory: a process asks for one when it first needs it. */
export class AppTokens {
  private readonly kept = new Map<string, { token: Promise<string>; expires_at: number }>();

  constructor(
    private readonly client: HttpClient,
    private readonly id_url: string,
    private readonly path = '/oauth2/token',
  ) {}

  /** @throws HttpFailed when the vendor does not take the app's secret, and what calls to the outside throw */
  token(app: OAuthApp): Promise<string> {
    const key = `${app.client_id} ${app.client_secret}`;
    const kept = this.kept.get(key);
    if (kept !== undefined && kept.expires_at > Date.now()) return kept.token;
    const one = { token: this.ask(app, (expires_at) => (one.expires_at = expires_at)), expires_at: Infinity };
    this.kept.set(key, one);
    one.token.catch(() => this.drop(key, one));
    return one.token;
  }

  /** Calls `ask` with a token; a refused token is replaced once. */
  async use<T>(app: OAuthApp, ask: (token: string) => Promise<T>): Promise<T> {
    const token = await this.token(app);
    try {
      return await ask(token);
    } catch (error) {
      if (!(error instanceof HttpFailed) || error.status !== 401) throw error;
      this.forget(app);
      return ask(await this.token(app));
    }
  }

  /** The vendor has refused the token. */
  forget(app: OAuthApp): void {
    this.kept.delete(`${app.client_id} ${app.client_secret}`);
  }

  private drop(key: string, one: object): void {
    if (this.kept.get(key) === one) this.kept.delete(key);
  }

  private async ask({ client_id, client_secret }: OAuthApp, expires: (at: number) => void): Promise<string> {
    const answer = await this.client.ask({
      method: 'POST',
      url: `${this.id_url}${this.path}`,
      headers: { 'content-type': 'application/x-www-form-urlencoded' },
      body: new URLSearchParams({ client_id, client_secret, grant_type: 'client_credentials' }).toString(),
      repeatable: true,
    });
    const { access_token, expires_in } = bodyOf(answer, Token, this.id_url);
    expires(Date.now() + (readSeconds(expires_in) ?? LIFETIME_S) * 1000 - EARLY_MS);
    return access_token;
  }
}
