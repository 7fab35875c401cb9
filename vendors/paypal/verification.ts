import { z } from 'zod';
import { NotSent, OutcomeUnknown } from '../../kernel/job';
import type { HttpAnswer, HttpClient, HttpClients, HttpRequest } from '../http/port';
import { bodyAs } from '../http/body';
import { hostOf } from '../http/hosts';
import { type DeliveryVerification, type PaypalDelivery, VerificationUnavailable } from './port';

export interface PaypalOptions {
  client_id: string;
  client_secret: string;
  api_url: string;
  /** Unix milliseconds. Default: the clock. */
  now?: () => number;
}

/** PayPal waits for our answer as long. */
const DEADLINE_MS = 8_000;
const RETRY_AFTER_SECONDS = 5;
/** Anybody can make us ask; so many questions are under way at most. */
const MAX_AT_ONCE = 16;
/** A token is not used in its last minute. */
const SPARE_MS = 60_000;

interface KeptToken {
  access_token: string;
  /** Unix milliseconds; from then on another is asked for. */
  ends_at: number;
}

const Token = z.object({ access_token: z.string().min(1), expires_in: z.number().positive() });
const Verdict = z.object({ verification_status: z.string() });

/**
 * PayPal's API that verifies webhooks, `POST /v1/notifications/verify-webhook-signature`, at one host alone. The app's
 * token is kept until a minute before its end, and asked for anew when PayPal refuses it.
 */
export function paypalVerification(http: HttpClients, options: PaypalOptions): DeliveryVerification {
  const { client_id, client_secret, api_url, now = Date.now } = options;
  const client: HttpClient = http.client('paypal', [hostOf(api_url)]);
  let kept: Promise<KeptToken> | null = null;
  let under_way = 0;

  return {
    async isOwn(delivery) {
      if (under_way >= MAX_AT_ONCE) throw away('too many deliveries are being verified');
      under_way += 1;
      try {
        return await isOwn(delivery);
      } finally {
        under_way -= 1;
      }
    },
  };

  async function isOwn(delivery: PaypalDelivery): Promise<boolean> {
    const body = question(delivery);
    let answer = await verify(body, await token());
    if (answer.status === 401) {
      kept = null;
      answer = await verify(body, await token());
    }
    if (answer.status === 200) return read(answer, Verdict).verification_status === 'SUCCESS';
    // The values come from the delivery: PayPal never sends some that it does not take itself.
    if (answer.status === 400 || answer.status === 422) return false;
    throw away(`PayPal answered ${answer.status}`, answer.retry_after_ms);
  }

  function verify(body: string, access_token: string): Promise<HttpAnswer> {
    const headers = { authorization: `Bearer ${access_token}`, 'content-type': 'application/json' };
    return call({ method: 'POST', url: `${api_url}/v1/notifications/verify-webhook-signature`, headers, body });
  }

  /** Fetches a token once at a time, however many deliveries wait for it. */
  async function token(): Promise<string> {
    const asked = (kept ??= askForToken());
    const forget = () => {
      if (kept === asked) kept = null;
    };
    const { access_token, ends_at } = await asked.catch((error: unknown) => {
      forget();
      throw error;
    });
    // The one that ended serves this delivery still, within the minute that is spared.
    if (ends_at <= now()) forget();
    return access_token;
  }

  async function askForToken(): Promise<KeptToken> {
    const basic = Buffer.from(`${client_id}:${client_secret}`).toString('base64');
    const answer = await call({
      method: 'POST',
      url: `${api_url}/v1/oauth2/token`,
      headers: { authorization: `Basic ${basic}`, 'content-type': 'application/x-www-form-urlencoded' },
      body: 'grant_type=client_credentials',
    });
    if (answer.status !== 200) throw away(`PayPal gave no token: ${answer.status}`, answer.retry_after_ms);
    const { access_token, expires_in } = read(answer, Token);
    return { access_token, ends_at: now() + expires_in * 1000 - SPARE_MS };
  }

  async function call(request: HttpRequest): Promise<HttpAnswer> {
    try {
      // Neither question changes anything there.
      return await client.call({ ...request, repeatable: true, deadline_ms: DEADLINE_MS });
    } catch (cause) {
      if (cause instanceof NotSent || cause instanceof OutcomeUnknown) {
        throw away('PayPal does not answer', undefined, cause);
      }
      throw cause;
    }
  }

  function read<T>(answer: HttpAnswer, shape: z.ZodType<T>): T {
    const data = bodyAs(answer, shape);
    if (data === undefined) throw away('PayPal answered in another shape');
    return data;
  }
}

/** The event stands in it as it came: what is serialised again is another text, and does not verify. */
function question({ event, ...members }: PaypalDelivery): string {
  return `{"webhook_event":${event},${JSON.stringify(members).slice(1)}`;
}

const away = (message: string, retry_after_ms?: number, cause?: unknown): VerificationUnavailable =>
  new VerificationUnavailable(message, Math.ceil((retry_after_ms ?? RETRY_AFTER_SECONDS * 1000) / 1000), { cause });
