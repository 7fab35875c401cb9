/** Headers and body of a delivery. */
export interface PaypalDelivery {
  transmission_id: string;
  transmission_time: string;
  transmission_sig: string;
  auth_algo: string;
  cert_url: string;
  /** Ours, at PayPal. */
  webhook_id: string;
  /** The body as it came: one JSON object. */
  event: string;
}

/** PayPal did not answer whether a delivery is its own; nothing is known of it. */
export class VerificationUnavailable extends Error {
  constructor(
    message: string,
    /** Seconds after which to ask again. */
    readonly retry_after_seconds: number,
    options?: ErrorOptions,
  ) {
    super(message, options);
    this.name = 'VerificationAway';
  }
}

/** Asks PayPal whether a delivery is its own. */
export interface DeliveryVerification {
  /** @throws VerificationAway when PayPal did not answer */
  isOwn(delivery: PaypalDelivery): Promise<boolean>;
}
