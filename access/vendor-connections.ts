import type { PersonalTexts } from '../engines/subject-keys/port';
import type { KickSubscriptions } from '../vendors/kick/port';
import type { OAuthApp, OAuthVendor } from '../vendors/oauth/port';
import type { KeptGrant } from './connection-grants';
import type { ConnectionTokens } from './connection-tokens';

/** How connections are spoken for at their vendors. */
export interface VendorConnections {
  vendors: ReadonlyMap<string, OAuthVendor>;
  tokens: ConnectionTokens;
  /** Opens what is sealed of grants. */
  texts: PersonalTexts;
  kick: KickSubscriptions;
  /** The app that a grant was made with; null where it is gone or another one. */
  appOf(grant: KeptGrant): Promise<OAuthApp | null>;
}
