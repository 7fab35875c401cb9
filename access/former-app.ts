import { HttpFailed } from '../vendors/http/port';
import { NotSent, OutcomeUnknown } from '../kernel/job';
import type { OAuthVendor } from '../vendors/oauth/port';
import { otherGrants, readGrant } from './connection-grants';
import type { Services } from './services';

/**
 * Ends the subscriptions of the app that a connection was made with, before the grant of another app replaces its own.
 * Those that another account uses stay. Where the old token is refused or the vendor does not answer they stay too:
 * their deliveries are dropped, because their ids are stored with no grant any more.
 */
export async function endFormerApp(
  services: Pick<Services, 'db' | 'texts'>,
  vendor: OAuthVendor,
  { connection_id, client_id }: { connection_id: string; client_id: string },
): Promise<void> {
  if (vendor.endSubscriptions === undefined) return;
  const former = await readGrant(services, connection_id);
  if (former?.kind !== 'channel' || former.client_id === client_id) return;
  if ((await otherGrants(services.db, former)).includes('channel')) return;
  try {
    await vendor.endSubscriptions(former.access_token);
  } catch (error) {
    if (!(error instanceof HttpFailed || error instanceof NotSent || error instanceof OutcomeUnknown)) throw error;
  }
}
