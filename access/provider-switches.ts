import { type ConnectionKind, switchesOf } from '../domain/providers';
import { featureDisabled } from '../kernel/operation-errors';
import type { FeatureFlags } from './services';

/** Declared by an operation that logs in or connects, with the flag that is off. */
export const PROVIDER_DISABLED = { PROVIDER_DISABLED: featureDisabled('Feature not enabled: {flag}') };

/**
 * The flag that forbids new logins or connections of this kind; null when there is none. What is connected goes on.
 * `account_id`: whose own settings count too, where an account connects. Source: spec extra-facts §26.
 */
export async function switchedOff(
  features: FeatureFlags,
  slug: string,
  kind: ConnectionKind,
  account_id: string | null = null,
): Promise<string | null> {
  for (const flag of switchesOf(slug, kind)) if (!(await features.enabled(flag, account_id))) return flag;
  return null;
}
