import { z } from 'zod';
import { LOGIN_PROVIDERS, platformOf, type LoginProvider } from '../../domain/identity/login-connections';
import { ApiError } from '../../kernel/errors';
import { ProviderUnavailable, TokenRefused, type ProviderIdentity } from '../../vendors/login/port';
import { badRequest, featureDisabled, invalid, unauthorized, type Refuse } from '../../app/operation';
import { blockingFlag } from '../../access/authorization/provider-switches';
import type { Services } from '../../app/services';

const words = (most: number) => z.string().trim().min(1).max(most);

/** Source: spec doc2 §2.4. */
const ProviderProfileInput = z
  .object({
    display_name: words(100),
    username: words(100).nullish(),
    avatar_url: z
      .url({ protocol: /^https$/, error: 'avatar_url must be an https URL' })
      .max(2048)
      .nullish(),
    email: z.email('email must be an e-mail address').max(254).nullish(),
  })
  .meta({ id: 'ProviderProfileInput' });

/** Source: spec doc2 §2.4. */
export const ExchangeTokenInput = z
  .object({
    provider: z
      .string()
      .max(40)
      .describe(`One of ${LOGIN_PROVIDERS.join(', ')}; youtube is google`),
    provider_id: words(200).describe("The person's id at the provider"),
    access_token: z
      .string()
      .regex(/^[\x21-\x7e ]{1,4096}$/, 'access_token must be an OAuth access token')
      .describe("The provider's OAuth access token; it must have been given to an app of this service"),
    profile: ProviderProfileInput.nullish().describe('Counts where the provider itself says nothing'),
  })
  .meta({ id: 'ExchangeTokenInput' });
type ExchangeTokenInput = z.output<typeof ExchangeTokenInput>;

export const providerErrors = {
  UNKNOWN_PROVIDER: invalid('Invalid provider: {provider}'),
  PROVIDER_OFF: featureDisabled('Feature not enabled: {flag}'),
  PROVIDER_NOT_SET_UP: badRequest('Login with {provider} is not set up here'),
  REFUSED_PROVIDER_TOKEN: unauthorized('Invalid or expired provider token'),
};

/** Seconds, where the provider gives no delay. */
const RETRY_AFTER = 10;
/** Removes NULs, which PostgreSQL does not store, and limits the length in characters; null for an empty text. */
const shortened = (text: string | null | undefined, most: number): string | null =>
  [...(text ?? '').replaceAll('\0', '').trim()].slice(0, most).join('') || null;
const MAX_SCOPES = 100;
/** The end of the year 9999. */
const LAST_MS = 253_402_300_799_999;

/** Flag that forbids logging in with a provider and linking it; null when allowed. Existing links stay. */
export async function loginBlockingFlag(
  { features }: Pick<Services, 'features'>,
  provider: LoginProvider,
): Promise<string | null> {
  return blockingFlag(features, platformOf(provider), 'login');
}

/**
 * Verifies an access token with its provider: the client's `provider_id` must match the provider's answer. The client's
 * name and picture count only where the provider has none.
 * @throws DomainError of {@link providerErrors}; ApiError 503 while the provider is unavailable
 */
export async function identify(
  services: Pick<Services, 'features' | 'logins'>,
  { provider: named, provider_id, access_token, profile }: ExchangeTokenInput,
  refuse: Refuse<typeof providerErrors>,
): Promise<{ provider: LoginProvider; said: ProviderIdentity }> {
  const provider = LOGIN_PROVIDERS.find((one) => one === (named === 'youtube' ? 'google' : named));
  if (provider === undefined) throw refuse('UNKNOWN_PROVIDER', { provider: named });
  const flag = await loginBlockingFlag(services, provider);
  if (flag !== null) throw refuse('PROVIDER_OFF', { flag });
  const asked = services.logins.get(provider);
  if (asked === undefined) throw refuse('PROVIDER_NOT_SET_UP', { provider });
  let said: ProviderIdentity;
  try {
    said = await asked.identify(access_token);
  } catch (error) {
    if (error instanceof TokenRefused) throw refuse('REFUSED_PROVIDER_TOKEN');
    if (!(error instanceof ProviderUnavailable)) throw error;
    const retry_after_seconds = Math.ceil((error.retry_after_ms ?? RETRY_AFTER * 1000) / 1000);
    throw new ApiError('INTERNAL_SERVER_ERROR', error.message, { status: 503, retry_after_seconds, cause: error });
  }
  if (said.provider_id !== provider_id) throw refuse('REFUSED_PROVIDER_TOKEN');
  const picture = z
    .url({ protocol: /^https$/ })
    .max(2048)
    .safeParse(said.avatar_url ?? profile?.avatar_url);
  return {
    provider,
    said: {
      ...said,
      username: shortened(said.username ?? profile?.username, 100),
      display_name: shortened(said.display_name ?? profile?.display_name ?? said.username, 100),
      avatar_url: picture.success ? picture.data : null,
      email: shortened(said.email ?? profile?.email, 254),
      scopes: said.scopes.slice(0, MAX_SCOPES).flatMap((scope) => shortened(scope, 200) ?? []),
      expires_at: said.expires_at !== null && said.expires_at <= LAST_MS ? Math.max(0, said.expires_at) : null,
    },
  };
}
