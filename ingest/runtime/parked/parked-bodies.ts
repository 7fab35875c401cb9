import type { PersonalTexts } from '../../../privacy/subject-keys/port';

/** Days after which parked deliveries are deleted, settled or not. */
export const KEPT_DAYS = 30;
const DAY_MS = 86_400_000;

/** A stored body: sealed, or in clear without a key, from earlier releases. */
export interface KeptBody {
  raw_body: Buffer;
  key_id: string | null;
  delivery_key: string;
}
export const BODY = 'raw_body, key_id, delivery_key';

/** Opens the bodies in their order; null for those that cannot be read any more. */
export async function opened(texts: PersonalTexts, rows: readonly KeptBody[]): Promise<(Buffer | null)[]> {
  const sealed = rows.flatMap(({ raw_body, key_id, delivery_key }) =>
    key_id === null ? [] : [{ key_id, sealed: raw_body.toString('base64'), context: contextOf(delivery_key) }],
  );
  const clear = (await texts.openAll(sealed)).values();
  return rows.map(({ raw_body, key_id }) => {
    if (key_id === null) return raw_body;
    const text = clear.next().value ?? null;
    return text === null ? null : bytesOf(text);
  });
}

// Any bytes as a text, and back.
const textOf = (bytes: Buffer): string => bytes.toString('latin1');
const bytesOf = (text: string): Buffer => Buffer.from(text, 'latin1');
const contextOf = (delivery_key: string): string => `parked ${delivery_key}`;

/**
 * Seals the body under the key of its subject, where known; else under a key of the connection, or of the vendor's
 * webhook, for a day. That key ends when the deliveries of that day are deleted, so that copies in backups become
 * unreadable, too.
 */
export async function sealedBody(
  texts: PersonalTexts,
  { subject, vendor, place, received_at, raw_body }: SealedDelivery,
  delivery_key: string,
): Promise<Pick<KeptBody, 'raw_body' | 'key_id'>> {
  const day = Math.floor(received_at / DAY_MS);
  const [owner, expires_at] = subject
    ? [subject]
    : [`parked:${vendor}:${place}:${day}`, new Date((day + 1 + KEPT_DAYS) * DAY_MS)];
  const { key_id, sealed } = await texts.seal(owner, textOf(raw_body), contextOf(delivery_key), expires_at);
  return { raw_body: Buffer.from(sealed, 'base64'), key_id };
}

interface SealedDelivery {
  subject?: string | null;
  vendor: string;
  /** Connection that received it, or the webhook. */
  place: string;
  /** Unix milliseconds. */
  received_at: number;
  raw_body: Buffer;
}

/** Returns a test whether a body mentions a person: 123 in 91234 is another id, and case is ignored. */
export function mentionOf(person_id: string): (body: Buffer) => boolean {
  // A guest of a shop is identified by the order alone.
  const [id] = person_id.split(':').slice(-1);
  const word = new RegExp(`(?<![\\w-])${id!.replace(/[^\w]/g, '\\$&')}(?![\\w-])`, 'i');
  const escaped = /\\u([0-9a-f]{4})/gi;
  return (body) => {
    const text = body.toString();
    return word.test(text.replace(escaped, (_whole, hex: string) => String.fromCharCode(parseInt(hex, 16))));
  };
}
