import { createHttpClients } from '../vendors/http/client';
import type { DeliveryVerification } from '../vendors/paypal/port';
import { paypalVerification } from '../vendors/paypal/verification';
import type { CallersDeps } from './callers';

/** Who is asked whether a delivery of payouts is PayPal's own; null where no app is set that may ask. */
export function openPaypal(
  deps: Pick<CallersDeps, 'settings' | 'metrics' | 'engines' | 'stops'>,
): DeliveryVerification | null {
  const { settings, metrics, engines, stops } = deps;
  const { paypal, payments, outgoing } = settings;
  if ([payments.paypal_webhook_id, paypal.client_id, paypal.client_secret].includes('')) return null;
  const { tracing } = engines;
  const http = createHttpClients({ metrics, tracing, allow_loopback: outgoing.allow_loopback });
  stops.add(() => http.close());
  return paypalVerification(http, paypal);
}
