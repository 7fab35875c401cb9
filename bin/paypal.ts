import type { DeliveryVerification } from '../vendors/paypal/port';
import { paypalVerification } from '../vendors/paypal/verification';
import type { CallersDeps } from './callers';
import { openHttp } from './http';

/** Who is asked whether a delivery of payouts is PayPal's own; null where no app is set that may ask. */
export function openPaypal(
  deps: Pick<CallersDeps, 'settings' | 'metrics' | 'engines' | 'stops'>,
): DeliveryVerification | null {
  const { paypal, payments } = deps.settings;
  if ([payments.paypal_webhook_id, paypal.client_id, paypal.client_secret].includes('')) return null;
  return paypalVerification(openHttp(deps), paypal);
}
