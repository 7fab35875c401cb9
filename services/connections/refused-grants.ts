import { NotSent, OutcomeUnknown } from '../../kernel/job';
import { HttpFailed } from '../../vendors/http/port';
import { AppRefused, GrantRefused, VendorUnavailable, type OAuthApp, type OAuthVendor } from '../../vendors/oauth/port';
import { dropGrant, otherGrants, readGrant } from './connection-grants';
import type { Services } from '../../app/services';

/** Failures of a revocation at the vendor. */
const FAILURES = [GrantRefused, AppRefused, VendorUnavailable, HttpFailed, NotSent, OutcomeUnknown];

/**
 * Revokes and deletes the tokens of a login whose connection was refused, because the sweep of grants would delete them
 * after days without revoking them. The tokens are deleted also when the vendor does not answer. Where a revocation
 * ends everything that the person gave the app, tokens are revoked only when no other connection uses that.
 */
export async function endRefusedGrant(
  services: Pick<Services, 'db' | 'texts'>,
  { vendor, app, connection_id }: { vendor: OAuthVendor; app: OAuthApp; connection_id: string },
): Promise<void> {
  const kept = await readGrant(services, connection_id);
  if (kept === null) return;
  const shared = vendor.revoke_ends_all ? await otherGrants(services.db, kept) : [];
  if (shared.length === 0) {
    try {
      await vendor.revoke?.(app, kept);
    } catch (error) {
      if (!FAILURES.some((failure) => error instanceof failure)) throw error;
    }
  }
  await dropGrant(services.db, connection_id);
}
