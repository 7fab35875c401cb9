import { createHash } from 'node:crypto';
import type { ConnectionLookup } from '../../../services/connections/connections';
import type { RecordEnvelope, Topic } from '../../../domain/common/records';
import type { Platform, Vendor } from '../../../domain/common/vendors';
import { ApiError } from '../../../kernel/errors';
import type { DraftedMessage } from '../parse/chat-pictures';
import { decodeText, readJson, storableJson } from '../parse/text';

/** A request from the front door: unparsed, because signatures cover the bytes as sent. */
export interface WebhookRequest {
  /** By lower-case name. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** A repeated parameter is an array. */
  query: Readonly<Record<string, unknown>>;
  raw_body: Buffer;
  /** Unix milliseconds. */
  received_at: number;
  ip: string;
  /** W3C traceparent. */
  trace?: string | null;
  /** For log lines: `correlation_id`, and `trace_id` while tracing is on. */
  log_facts?: Readonly<Record<string, string>>;
  /** Path parameters by name. */
  params?: Readonly<Record<string, string>>;
}

export interface WebhookAnswer {
  status: number;
  /** Sent unchanged. */
  body?: string;
  /** Default: JSON. */
  content_type?: string;
  headers?: Record<string, string>;
}

/**
 * An inbound webhook, outside the operations: file-like bodies, vendors' own signatures, REST only (spec rulings c45).
 * `handle` answers 2xx only after everything that it accepted is durable.
 * @throws ApiError: 401 or 403 for signatures (these count against the caller's IP), 400 where the spec requires it,
 * 503 with `Retry-After` when storing failed.
 */
export interface WebhookRoute {
  method: 'GET' | 'POST';
  /** `/v1/webhooks/kick`, with `{name}` for path parameters. */
  path: string;
  /** Whether the OpenAPI document has it: the two endpoints of payouts and Connect stay out (spec doc1 §9.4). */
  described: boolean;
  /** Headers, lower case, of which a signed delivery has at least one. Absent: no delivery is signed. */
  signatures?: readonly string[];
  /**
   * Refuses an unsigned delivery by its headers, before its body is read.
   * @throws ApiError as {@link WebhookRoute.handle}
   */
  admitUnsigned?(request: WebhookRequest): Promise<void>;
  handle(request: WebhookRequest): Promise<WebhookAnswer>;
}

/** A verified delivery, as input of pure normalisers; a parked one is read again from the same facts. */
export interface Delivery {
  /** First value of the header, by lower-case name; null when it is absent or empty. */
  header(name: string): string | null;
  /** The body with NUL bytes and invalid UTF-8 replaced. */
  text: string;
  /** SHA-256 of the raw body, hex; computed on access. */
  readonly digest: string;
  /**
   * True when the signature also covers the id in the headers; otherwise a captured delivery can be replayed under any
   * id.
   */
  id_signed: boolean;
  /** Unix milliseconds. */
  received_at: number;
}

/** Owner of a record, still in the vendor's terms. */
export type Owner =
  | {
      kind: 'channel';
      platform: Platform;
      channel_id: string;
      /**
       * The subscription that delivered it, where the vendor signs for all apps with one key: only an account's own
       * subscriptions count. Null where the delivery names none; absent where the signature proves the app.
       */
      subscription_id?: string | null;
      /** Type of this subscription; absent on a delivery that is not stored. */
      subscription_type?: string;
    }
  | { kind: 'shop'; shop_domain: string }
  /** Received over a connection, which belongs to one account. */
  | { kind: 'account'; account_id: string };

/** A record before its account is known. */
export interface DraftRecord extends Omit<RecordEnvelope, 'id' | 'account_id' | 'received_at' | 'trace'> {
  owner: Owner;
  topic: Topic;
  /** For a chat message: makes the event that is stored with it when its author writes for the first time. */
  first_message?: () => DraftRecord;
  /** For a chat message: its draft, which may be completed before it is stored. */
  message?: DraftedMessage;
}

/** Outcome of a delivery; an exception means a fault on our side. */
export type Outcome =
  /** At least one record. */
  | { kind: 'ok'; records: DraftRecord[] }
  /** Understood, and not stored: 200, logged. */
  | { kind: 'skip'; reason: string; detail?: string }
  /**
   * Not understood, or not storable: 200, and stored in the dead letters. With an owner it is kept only when an account
   * here has that owner: vendors that sign for all apps with one key deliver the subscriptions of other apps, too.
   */
  | { kind: 'park'; reason: string; detail: string; owner?: Owner }
  /** Refused for its content; only where the spec requires it. */
  | { kind: 'refuse'; message: string };

export const ok = (...records: DraftRecord[]): Outcome => ({ kind: 'ok', records });
export const skip = (reason: string, detail?: string): Outcome => ({ kind: 'skip', reason, detail });
export const park = (reason: string, detail: string): Outcome => ({ kind: 'park', reason, detail });
/** A documented type that is not stored is counted by its name; any other is parked. */
export const unmapped = (type: string, is_documented: boolean): Outcome =>
  is_documented ? skip('unmapped_type', type.slice(0, 100)) : park('unknown_type', type.slice(0, 100));
export const refuse = (message: string): Outcome => ({ kind: 'refuse', message });

export const unauthorized = (message = 'Invalid webhook signature') => new ApiError('UNAUTHORIZED', message);

/** Parts of a delivery that its signature covers besides the body. */
export type Verified = Pick<Delivery, 'id_signed'>;
export const BODY_ALONE: Verified = { id_signed: false };

/** Webhook of one vendor: its verification, and its normaliser. */
export interface WebhookVendor {
  vendor: Vendor;
  path: string;
  /** Left out of the OpenAPI document. Default false. */
  undescribed?: true;
  /** Headers, lower case, that {@link normalise} reads: stored with a parked body. Signatures are not among them. */
  headers: readonly string[];
  /** Headers, lower case, that carry signatures; a signed delivery has at least one. */
  signatures: readonly string[];
  /**
   * Verifies the signature and returns its coverage. Without any signature header the outcome depends on headers alone.
   * @throws ApiError 401 or 403.
   */
  verify(request: WebhookRequest, connections: ConnectionLookup, now: number): Promise<Verified>;
  normalise(delivery: Delivery): Outcome;
}

/** Whether a request has one of the headers. */
export const hasOneOf = (headers: WebhookRequest['headers'], names: readonly string[]): boolean =>
  names.some((name) => headerOf(headers, name) !== null);

/** First value of a header; null when absent or blank. */
export function headerOf(headers: WebhookRequest['headers'], name: string): string | null {
  const value = headers[name];
  const first = Array.isArray(value) ? value[0] : value;
  return first === undefined || first.trim() === '' ? null : first;
}

export function toDelivery(
  headers: WebhookRequest['headers'],
  raw_body: Buffer,
  received_at: number,
  { id_signed }: Verified = BODY_ALONE,
): Delivery {
  return new Received(headers, raw_body, received_at, id_signed);
}

// A class: an object with a getter of its own costs ten times as much to make.
class Received implements Delivery {
  readonly text: string;

  constructor(
    private readonly headers: WebhookRequest['headers'],
    private readonly raw_body: Buffer,
    readonly received_at: number,
    readonly id_signed: boolean,
  ) {
    this.text = decodeText(raw_body);
  }

  header(name: string): string | null {
    return headerOf(this.headers, name);
  }

  // Computed on access, because few deliveries lack an id.
  get digest(): string {
    return createHash('sha256').update(this.raw_body).digest('hex');
  }
}

/** Returns the storable copy of a JSON delivery and its parsed value, or the reason to park it. */
export function readJsonBody(
  delivery: Delivery,
): { ok: true; raw: string; value: unknown } | { ok: false; outcome: Outcome } {
  const raw = storableJson(delivery.text);
  const reading = readJson(raw);
  return reading.ok
    ? { ok: true, raw, value: reading.value }
    : { ok: false, outcome: park(reading.reason, reading.detail) };
}

/** Longest id stored as the vendor gave it; longer ones are hashed, which keeps them unique. */
const MAX_EXTERNAL_ID = 200;

/** A vendor's id with its slug: `kick:01J…`. */
export function externalId(vendor: Vendor, ...parts: readonly string[]): string {
  const id = parts.length === 1 ? `${vendor}:${parts[0]}` : [vendor, ...parts].join(':');
  if (id.length <= MAX_EXTERNAL_ID) return id;
  return `${vendor}:sha256:${createHash('sha256').update(id).digest('hex')}`;
}

/** Id of a delivery without any id: equal bytes are one event. `salt` distinguishes further (a signed time). */
export function contentId(vendor: Vendor, delivery: Delivery, salt = ''): string {
  const hash = createHash('sha256').update(delivery.digest).update(salt).digest('hex');
  return `${vendor}:content:${hash.slice(0, 40)}`;
}

/** Identity of a delivery; `former_id` is left out when it equals the id. */
export type Identity = Pick<DraftRecord, 'external_id' | 'same_raw' | 'former_id'>;

/** Identity by an id that the signature covers. `unsigned`: the unsigned id that earlier releases used. */
export function signedIdentity(vendor: Vendor, signed: string, unsigned: string | null): Identity {
  const external_id = externalId(vendor, signed);
  const former_id = unsigned === null ? external_id : externalId(vendor, unsigned);
  return former_id === external_id ? { external_id } : { external_id, former_id };
}

/** Subject such as `kick:987654321`, or null when the payload has no such person (vendors write 0 or an empty text). */
export function subjectOf(vendor: Vendor, id: unknown): string | null {
  const text = idText(id);
  return text === null || text === '0' ? null : externalId(vendor, text);
}

/** An id as text, because vendors send numbers and strings for the same member. Null when it is neither, or empty. */
export function idText(value: unknown): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value.trim();
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : null;
}

/** Longest id that is kept in memory or in the state of a connection: the vendors' own have 80 at most. */
const MAX_KEPT_ID = 200;

/** An id that may be kept: {@link idText} of a plausible length. */
export function keptId(value: unknown): string | null {
  const text = idText(value);
  return text === null || text.length > MAX_KEPT_ID ? null : text;
}

/** A number from a number or a text; NaN for everything else, also for an object that cannot be converted. */
export const numberOf = (value: unknown): number => Number(idText(value) ?? Number.NaN);

/** A text; null for any other type, or when empty. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** Reads a member that may be missing or of another type. */
export function member(value: unknown, ...path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (at === null || typeof at !== 'object' || Array.isArray(at) || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}
