import type { DeliveryVerification } from '../../vendors/paypal/port';
import { paypalVerification } from '../../vendors/paypal/verification';
import type { CallersDeps } from '../callers';
import { openHttp } from './http';

/** Verification of payout deliveries by PayPal's API; null without a configured app. */
export function openPaypal(
  deps: Pick<CallersDeps, 'settings' | 'metrics' | 'engines' | 'stops'>,
): DeliveryVerification | null {
  const { paypal, payments } = deps.settings;
  if ([payments.paypal_webhook_id, paypal.client_id, paypal.client_secret].includes('')) return null;
  return paypalVerification(openHttp(deps), paypal);
}
