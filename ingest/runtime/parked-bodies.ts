import type { PersonalTexts } from '../../engines/subject-keys/port';

/** Parked deliveries are deleted when they are so old, settled or not. */
export const KEPT_DAYS = 30;
const DAY_MS = 86_400_000;

/** A body as a row has it: sealed, or in clear where it has no key, as the build before wrote it. */
export interface KeptBody {
  raw_body: Buffer;
  key_id: string | null;
  delivery_key: string;
}
export const BODY = 'raw_body, key_id, delivery_key';

/** In their order; null for those that cannot be read any more. */
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
 * The body under the key of the person whom it is about, where that was understood; else under one of the connection,
 * or of the vendor's webhook, for a day. That one ends when what was parked that day is deleted, so that copies in
 * backups end with them.
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
  /** What the vendor said it to. */
  place: string;
  /** Unix milliseconds. */
  received_at: number;
  raw_body: Buffer;
}

/** Whether a body mentions a person: 123 in 91234 is another one, and names are written with capital letters or not. */
export function mentionOf(person_id: string): (body: Buffer) => boolean {
  // A guest of a shop is known by the order alone.
  const [id] = person_id.split(':').slice(-1);
  const word = new RegExp(`(?<![\\w-])${id!.replace(/[^\w]/g, '\\$&')}(?![\\w-])`, 'i');
  const escaped = /\\u([0-9a-f]{4})/gi;
  return (body) => {
    const text = body.toString();
    return word.test(text.replace(escaped, (_whole, hex: string) => String.fromCharCode(parseInt(hex, 16))));
  };
}
