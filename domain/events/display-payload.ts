import { endOfString, isWithinJsonBounds } from '../../lib/json/bounds';

/** Longest payload of an event on its channel, in bytes: with its record it fits a message. */
export const MAX_DISPLAY_PAYLOAD = 48 * 1024;

/** Parts of the names of members that hold contact data; `-` stands for any separator, or none. */
const CONTACT_WORDS = (
  'mail phone mobile address zip postal post-code street latitude longitude client-details payer-info tax-id birth ' +
  'status-url receipt-url invoice-url invoice-pdf landing-site note-attributes'
).split(' ');
/** Matches a name of a member that holds contact data, lower case and without separators. */
const CONTACT_NAME = new RegExp(
  `${CONTACT_WORDS.join('|').replaceAll('-', '')}|^ip$|(?:browser|client|remote|user|customer|payer)ip$`,
);
/** Lower-case JSON text without a match holds no contact data. */
const SIGN = new RegExp(
  `@|\\\\u|"(?:\\\\.|\\s){0,8}\\+|ip[^a-z0-9"]{0,3}"|${CONTACT_WORDS.join('|').replaceAll('-', '[^a-z0-9"]{0,3}')}`,
);
const EMAIL = /^[^\s@]+@[^\s@]+\.[^\s@.]+$/;
const PHONE = /^\+\d[\d ()/.-]{6,}$/;
/** Longest contact value; RFC 5321 allows 320 characters of an address. */
const MAX_CONTACT_VALUE = 400;
const BOUNDS = { depth: 200, members: Infinity } as const;

/**
 * A vendor's payload for display: JSON text without members and values that are e-mail addresses, phone numbers, postal
 * addresses or other contact data. What remains keeps its bytes and its order. Null where it is longer than
 * {@link MAX_DISPLAY_PAYLOAD} or nested deeper than 200 levels. Takes linear time.
 * @throws Error when the text is not JSON
 */
export function displayPayload(raw: string): string | null {
  if (!SIGN.test(raw.toLowerCase())) return fits(raw);
  return isWithinJsonBounds(raw, BOUNDS) ? fits(new Cleaner(raw).value()) : null;
}

const fits = (payload: string): string | null => (Buffer.byteLength(payload) <= MAX_DISPLAY_PAYLOAD ? payload : null);

const QUOTE = 34;
const COMMA = 44;
const BRACKETS = new Map([
  [91, 93],
  [123, 125],
]);
const SCALAR = /[^\s,\]}]+/y;

/** Copies JSON text token by token, without the members that are not shown. */
class Cleaner {
  private at = 0;

  constructor(private readonly text: string) {}

  value(): string {
    const first = this.next();
    const close = BRACKETS.get(first);
    if (close !== undefined) return this.items(close, first === 123);
    if (first !== QUOTE) return this.scalar();
    const text = this.string();
    return isContactValue(text) ? 'null' : text;
  }

  /** An array or an object. */
  private items(close: number, named: boolean): string {
    const open = this.text[this.at]!;
    let items = '';
    do {
      this.at += 1; // the bracket or the comma
      if (this.next() === close) break;
      const item = named ? this.member() : this.value();
      if (item !== null) items += items === '' ? item : `,${item}`;
    } while (this.next() === COMMA);
    if (this.next() !== close) throw new Error('the payload is not JSON');
    this.at += 1;
    return open + items + String.fromCharCode(close);
  }

  /** Null for one that is not shown. */
  private member(): string | null {
    const name = this.string();
    this.next();
    this.at += 1; // the colon
    const value = this.value();
    return isContactName(name) ? null : `${name}:${value}`;
  }

  private string(): string {
    const end = this.text.charCodeAt(this.at) === QUOTE ? endOfString(this.text, this.at) : -1;
    if (end === -1) throw new Error('the payload is not JSON');
    const text = this.text.slice(this.at, end + 1);
    this.at = end + 1;
    return text;
  }

  private scalar(): string {
    SCALAR.lastIndex = this.at;
    const text = SCALAR.exec(this.text)?.[0];
    if (text === undefined) throw new Error('the payload is not JSON');
    this.at += text.length;
    return text;
  }

  /** The next character that is no blank. */
  private next(): number {
    for (;;) {
      const unit = this.text.charCodeAt(this.at);
      if (unit !== 32 && unit !== 9 && unit !== 10 && unit !== 13) return unit;
      this.at += 1;
    }
  }
}

const decoded = (quoted: string): string =>
  quoted.includes('\\') ? (JSON.parse(quoted) as string) : quoted.slice(1, -1);

/** Vendors' payloads have the same few names again and again. */
const known_names = new Map<string, boolean>();
const MAX_KNOWN_NAMES = 5_000;
const MAX_KNOWN_NAME = 64;

function isContactName(quoted: string): boolean {
  const known = known_names.get(quoted);
  if (known !== undefined) return known;
  const letters = decoded(quoted)
    .toLowerCase()
    .replaceAll(/[^a-z0-9]/g, '');
  const contact = CONTACT_NAME.test(letters);
  if (known_names.size >= MAX_KNOWN_NAMES) known_names.clear();
  // A copy: a slice would keep its payload in memory.
  if (quoted.length <= MAX_KNOWN_NAME) known_names.set(Buffer.from(quoted).toString(), contact);
  return contact;
}

function isContactValue(quoted: string): boolean {
  if (quoted.length > MAX_CONTACT_VALUE || !/[@+\\]/.test(quoted)) return false;
  const value = decoded(quoted).trim();
  return EMAIL.test(value) || PHONE.test(value);
}
