import { type ConnectionKind, switchesOf } from '../../domain/connections/providers';
import { featureDisabled } from '../../kernel/operations/errors';
import type { FeatureFlags } from '../../app/services';

/** Error of an operation that logs in or connects; names the flag that is off. */
export const PROVIDER_DISABLED = { PROVIDER_DISABLED: featureDisabled('Feature not enabled: {flag}') };

/**
 * Flag that forbids new logins or connections of this kind; null when allowed. Existing connections stay. `account_id`:
 * the account that connects, whose own settings count too. Source: spec extra-facts §26.
 */
export async function blockingFlag(
  features: FeatureFlags,
  slug: string,
  kind: ConnectionKind,
  account_id: string | null = null,
): Promise<string | null> {
  for (const flag of switchesOf(slug, kind)) if (!(await features.enabled(flag, account_id))) return flag;
  return null;
}
