import type { IdentityProvider } from '../login/port';
import type { GrantOwner } from './port';

/** Owner of a token, from the vendor's identity endpoint. */
export async function ownerOf(identity: IdentityProvider, access_token: string): Promise<GrantOwner> {
  const { provider_id, username, display_name, avatar_url } = await identity.identify(access_token);
  return { platform_user_id: provider_id, username, display_name, avatar_url };
}
