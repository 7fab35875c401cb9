import { developmentIdentity } from './development';
import type { IdentityProvider } from './port';

/** A provider as the settings have it. */
interface KnownProvider {
  app: { readonly client_id: readonly string[] };
  identity(): IdentityProvider;
}

/**
 * The providers that people may log in with: those with an app. Where `development_logins` is on it is all that are
 * known, and development's tokens count at each.
 */
export function offeredProviders(
  known: Readonly<Record<string, KnownProvider>>,
  development_logins: boolean,
): Map<string, IdentityProvider> {
  const offered = new Map<string, IdentityProvider>();
  for (const [provider, { app, identity }] of Object.entries(known)) {
    const real = app.client_id.length > 0 ? identity() : null;
    if (development_logins) offered.set(provider, developmentIdentity(real));
    else if (real !== null) offered.set(provider, real);
  }
  return offered;
}
