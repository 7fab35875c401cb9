import { FakeVendor } from './fake';

export interface FakePaypal {
  vendor: FakeVendor;
  /** Bodies that PayPal has signed, by the id of their transmission. */
  signed: Map<string, string>;
  /** Takes every token away that was given. */
  revokeTokens(): void;
}

const APP = { client_id: 'app-of-tests', client_secret: 'secret-of-tests' };
const TOKEN_SECONDS = 32_400;

/** `api-m.paypal.com`, as far as the verification of webhooks goes. */
export function fakePaypal(webhook_id: string): FakePaypal & { app: typeof APP } {
  const signed = new Map<string, string>();
  const tokens = new Set<string>();
  const vendor = new FakeVendor(({ method, path, headers, body, token }) => {
    if (method === 'POST' && path === '/v1/oauth2/token') {
      const basic = `Basic ${Buffer.from(`${APP.client_id}:${APP.client_secret}`).toString('base64')}`;
      if (headers.authorization !== basic) return { status: 401, body: { error: 'invalid_client' } };
      const access_token = `A21AA${tokens.size}`;
      tokens.add(access_token);
      return { status: 200, body: { access_token, token_type: 'Bearer', expires_in: TOKEN_SECONDS } };
    }
    if (method === 'POST' && path === '/v1/notifications/verify-webhook-signature') {
      if (!tokens.has(token('Bearer'))) return { status: 401, body: { error: 'invalid_token' } };
      const asked = JSON.parse(body) as Record<string, unknown>;
      const text = signed.get(String(asked.transmission_id));
      // As PayPal does: over the text as it stands in the question, not over what it means.
      const own =
        asked.webhook_id === webhook_id && text !== undefined && body.includes(`"webhook_event":${text},"transmission`);
      return { status: 200, body: { verification_status: own ? 'SUCCESS' : 'FAILURE' } };
    }
    return { status: 404, body: { name: 'RESOURCE_NOT_FOUND' } };
  });
  return { vendor, signed, app: APP, revokeTokens: () => tokens.clear() };
}
