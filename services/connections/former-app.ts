import { HttpFailed } from '../../vendors/http/port';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { OAuthVendor } from '../../vendors/oauth/port';
import { type KeptGrant, otherGrants, readGrant } from './connection-grants';
import type { Services } from '../../app/services';

/** Reads the grant of another app that a connection is about to replace; null where no subscriptions depend on it. */
export async function readFormerApp(
  services: Pick<Services, 'db' | 'texts'>,
  vendor: OAuthVendor,
  { connection_id, client_id }: { connection_id: string; client_id: string },
): Promise<KeptGrant | null> {
  if (vendor.endSubscriptions === undefined) return null;
  const former = await readGrant(services, connection_id);
  return former?.kind === 'channel' && former.client_id !== client_id ? former : null;
}

/**
 * Ends the subscriptions of the previous app of a connection. Call it after storing the new grant: a process that dies
 * in between leaves a connection that still receives. Subscriptions stay when another account uses them, when the old
 * token is refused and when the vendor does not answer; leftover deliveries are dropped, because no grant has their
 * ids.
 */
export async function endFormerApp(
  { db }: Pick<Services, 'db'>,
  vendor: OAuthVendor,
  former: KeptGrant,
): Promise<void> {
  if ((await otherGrants(db, former)).includes('channel')) return;
  try {
    await vendor.endSubscriptions?.(former.access_token);
  } catch (error) {
    if (!(error instanceof HttpFailed || error instanceof NotSent || error instanceof OutcomeUnknown)) throw error;
  }
}
