import { createHmac } from 'node:crypto';

/** Prefix of secrets by Standard Webhooks. */
const PREFIX = 'whsec_';
export const webhookSecret = (bytes: Buffer): string => `${PREFIX}${bytes.toString('base64')}`;

/** A message as it is sent. */
export interface WebhookMessage {
  /** Equal over all tries. */
  id: string;
  /** Seconds since 1970. */
  timestamp: number;
  body: string;
}

/** Headers by Standard Webhooks: each secret signs. */
export function webhookHeaders(
  { id, timestamp, body }: WebhookMessage,
  secrets: readonly string[],
): Record<string, string> {
  const signatures = secrets.map((secret) => {
    const key = Buffer.from(secret.slice(PREFIX.length), 'base64');
    return `v1,${createHmac('sha256', key).update(`${id}.${timestamp}.${body}`).digest('base64')}`;
  });
  const content = { 'content-type': 'application/json' };
  return {
    'webhook-id': id,
    'webhook-timestamp': String(timestamp),
    'webhook-signature': signatures.join(' '),
    ...content,
  };
}
