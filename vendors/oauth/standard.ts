import { z } from 'zod';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { bodyAs } from '../http/body';
import type { HttpAnswer, HttpClient, HttpClients, HttpRequest } from '../http/port';
import { hostOf } from '../http/hosts';
import { scopesOf } from '../login/asking';
import { ProviderUnavailable, TokenRefused } from '../login/port';
import {
  AppRefused,
  GrantRefused,
  VendorUnavailable,
  type GrantKind,
  type GrantOwner,
  type OAuthApp,
  type OAuthGrant,
  type OAuthVendor,
} from './port';

/** Token endpoint's answer; some vendors write numbers as text, and scopes as a list. */
const TokenAnswer = z.looseObject({
  access_token: z.string().min(1).max(8192),
  refresh_token: z.string().min(1).max(8192).nullish(),
  expires_in: z.union([z.number(), z.string()]).nullish(),
  scope: z.union([z.string(), z.array(z.string())]).nullish(),
});
export type TokenAnswer = z.output<typeof TokenAnswer>;

/** How one vendor differs from the others. */
export interface OAuthSpec {
  vendor: string;
  /** Base addresses of its own that are called. */
  bases: readonly string[];
  /** Scopes by the kinds that begin there. */
  scopes: Partial<Record<GrantKind, readonly string[]>>;
  authorize_url: string;
  /** Query of that address besides the members of OAuth. */
  query?(kind: GrantKind): Record<string, string>;
  /** A call to its token endpoint; `given` are the members of OAuth without the app's. */
  token(app: OAuthApp, parameters: Readonly<Record<string, string>>): HttpRequest;
  revoke_ends_all?: boolean;
  revoke?(app: OAuthApp, tokens: { access_token: string; refresh_token: string | null }): readonly HttpRequest[];
  /** Owner of the token. May throw what an identity provider throws. */
  whose(asked: { http: HttpClients; app: OAuthApp; kind: GrantKind; answer: TokenAnswer }): Promise<GrantOwner>;
}

/** Somebody waits for an answer; a refresh is waited for by a vendor's adapter. */
const DEADLINE_MS = 10_000;

const form = { 'content-type': 'application/x-www-form-urlencoded', accept: 'application/json' };

/** A form as OAuth has it, to an address. */
export const post = (
  url: string,
  members: Readonly<Record<string, string>>,
  headers: Readonly<Record<string, string>> = {},
): HttpRequest => ({
  method: 'POST',
  url,
  headers: { ...form, ...headers },
  body: new URLSearchParams(members).toString(),
});

/** The app's id and secret as members of the form. */
export const inBody = ({ client_id, client_secret }: OAuthApp) => ({ client_id, client_secret });

/** OAuth 2 with a code and PKCE, as most vendors speak it. */
export function standardOAuth(http: HttpClients, spec: OAuthSpec): OAuthVendor {
  const { vendor, scopes, revoke } = spec;
  const client: HttpClient = http.client(vendor, [...new Set(spec.bases.map(hostOf))]);
  const scopesFor = (kind: GrantKind) => scopes[kind] ?? [];

  async function answerOf(request: HttpRequest): Promise<HttpAnswer> {
    try {
      return await client.call({ ...request, deadline_ms: DEADLINE_MS, repeatable: false });
    } catch (error) {
      if (error instanceof NotSent || error instanceof OutcomeUnknown)
        throw new VendorUnavailable(vendor, undefined, { cause: error });
      throw error;
    }
  }

  async function tokenOf(request: HttpRequest): Promise<TokenAnswer> {
    const answer = await answerOf(request);
    if (answer.status < 200 || answer.status > 299) throw refusal(vendor, answer);
    const said = bodyAs(answer, TokenAnswer);
    if (said === undefined) throw new VendorUnavailable(vendor);
    return said;
  }

  return {
    kinds: Object.keys(scopes) as GrantKind[],
    revoke_ends_all: spec.revoke_ends_all ?? false,
    scopes: scopesFor,
    authorizeUrl({ app, kind, redirect_uri, state, challenge }) {
      const url = new URL(spec.authorize_url);
      const query = {
        response_type: 'code',
        client_id: app.client_id,
        redirect_uri,
        scope: scopesFor(kind).join(' '),
        state,
        code_challenge: challenge,
        code_challenge_method: 'S256',
        ...spec.query?.(kind),
      };
      for (const [name, value] of Object.entries(query)) url.searchParams.set(name, value);
      return url.toString();
    },
    async exchange({ app, kind, redirect_uri, code, verifier }) {
      const parameters = { grant_type: 'authorization_code', code, redirect_uri, code_verifier: verifier };
      const answer = await tokenOf(spec.token(app, parameters));
      try {
        return { grant: grantOf(answer), owner: await spec.whose({ http, app, kind, answer }) };
      } catch (error) {
        if (error instanceof TokenRefused) throw new GrantRefused('the vendor does not say whose it is');
        if (error instanceof ProviderUnavailable)
          throw new VendorUnavailable(vendor, error.retry_after_ms, { cause: error });
        throw error;
      }
    },
    refresh: async (app, refresh_token) =>
      grantOf(await tokenOf(spec.token(app, { grant_type: 'refresh_token', refresh_token }))),
    ...(revoke && {
      async revoke(app, tokens) {
        for (const request of revoke(app, tokens)) {
          const answer = await answerOf(request);
          // Any other refusal means that the token is revoked already.
          if (answer.status >= 500 || answer.status === 429) throw new VendorUnavailable(vendor, answer.retry_after_ms);
        }
      },
    }),
  };
}

function grantOf({ access_token, refresh_token, expires_in, scope }: TokenAnswer): OAuthGrant {
  const seconds = Number(expires_in ?? Number.NaN);
  return {
    access_token,
    refresh_token: refresh_token ?? null,
    expires_at: Number.isFinite(seconds) && seconds > 0 ? Date.now() + Math.min(seconds, 1e9) * 1000 : null,
    scopes: typeof scope === 'string' ? scopesOf(scope) : (scope ?? null),
  };
}

const Refusal = z.looseObject({
  error: z.string().optional(),
  error_description: z.string().optional(),
  message: z.string().optional(),
});
/** Codes of a grant that is over: RFC 6749 5.2, RFC 6750 3.1, and what vendors write in their place. */
const DEAD_GRANT_CODES = new Set([
  'invalid_grant',
  'invalid_token',
  'invalid_refresh_token',
  'expired_token',
  'token_expired',
  'token_revoked',
  'token_inactive',
]);
/** Twitch: `Invalid refresh token`; Trovo: `invalid grant`. A refusal that names neither code nor token may pass. */
const DEAD_GRANT = [
  /\b(invalid|expired|revoked)\b.*\b(grant|code|token)\b/i,
  /\b(grant|code|token)\b.*\b(invalid|expired|revoked)\b/i,
];

/**
 * Error of a refusal. Twitch and Trovo explain it in words alone. A wrong secret must never be taken for a dead grant:
 * all connections would be flagged at once.
 */
function refusal(vendor: string, answer: HttpAnswer): Error {
  const { status, retry_after_ms } = answer;
  const said = bodyAs(answer, Refusal);
  if (said === undefined || status >= 500 || status === 429) return new VendorUnavailable(vendor, retry_after_ms);
  const { error = '', error_description = '', message = '' } = said;
  if (DEAD_GRANT_CODES.has(error)) return new GrantRefused(`${vendor} refuses the grant`);
  if (/client|redirect/i.test(`${error} ${message}`)) return new AppRefused(`${vendor} does not take our app`);
  const words = `${error} ${message} ${error_description}`;
  if ((status === 400 || status === 401) && DEAD_GRANT.some((dead) => dead.test(words)))
    return new GrantRefused(`${vendor} refuses the grant`);
  return new VendorUnavailable(vendor, retry_after_ms);
}
