import { TokenRefused, type IdentityProvider } from './port';

const TOKEN = /^development:([\w-]{1,100})(?::(.{1,100}))?$/;

/**
 * A provider for a machine that has no apps: `development:<id>[:<name>]` is whoever it says. Other tokens go to the
 * real provider, where there is one.
 */
export function developmentIdentity(real: IdentityProvider | null): IdentityProvider {
  return {
    async identify(token) {
      const said = TOKEN.exec(token);
      if (said === null) {
        if (real === null) throw new TokenRefused();
        return real.identify(token);
      }
      const [, provider_id, name] = said;
      const nothing = { avatar_url: null, email: null, scopes: [], expires_at: null };
      return { provider_id: provider_id!, username: provider_id!, display_name: name ?? null, ...nothing };
    },
  };
}
