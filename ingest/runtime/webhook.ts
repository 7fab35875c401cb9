import { createHash } from 'node:crypto';
import type { ConnectionLookup } from '../../access/connections';
import type { RecordEnvelope, Topic } from '../../domain/records';
import type { Platform, Vendor } from '../../domain/vendors';
import { ApiError } from '../../kernel/errors';
import { decodeText, readJson, storableJson } from './text';

/** A request as the front door hands it over: nothing parsed, since signatures cover the bytes as sent. */
export interface WebhookRequest {
  /** By lower-case name. */
  headers: Readonly<Record<string, string | string[] | undefined>>;
  /** A parameter that comes several times is an array. */
  query: Readonly<Record<string, unknown>>;
  raw_body: Buffer;
  /** Unix milliseconds. */
  received_at: number;
  ip: string;
  /** W3C traceparent. */
  trace?: string | null;
  /** For log lines: `correlation_id`, and `trace_id` while tracing is on. */
  log_facts?: Readonly<Record<string, string>>;
  /** Of the path, by name. */
  params?: Readonly<Record<string, string>>;
}

export interface WebhookAnswer {
  status: number;
  /** Sent as it is. */
  body?: string;
  /** Default: JSON. */
  content_type?: string;
  headers?: Record<string, string>;
}

/**
 * One inbound webhook, outside the operations: file-like bodies, vendors' own signatures, REST only (spec rulings c45).
 * `handle` answers 2xx only after everything it took in is durable.
 * @throws ApiError: 401 or 403 for signatures (these count against the caller's IP), 400 where the spec says so, 503
 * with `Retry-After` when it could not be stored.
 */
export interface WebhookRoute {
  method: 'GET' | 'POST';
  /** `/v1/webhooks/kick`, with `{name}` for path parameters. */
  path: string;
  /** Whether the OpenAPI document has it: the two endpoints of payouts and Connect stay out (spec doc1 §9.4). */
  described: boolean;
  handle(request: WebhookRequest): Promise<WebhookAnswer>;
}

/** A verified delivery, as pure normalisers read it; a parked one is read again from the same facts. */
export interface Delivery {
  /** First value of the header, by lower-case name; null when it is absent or empty. */
  header(name: string): string | null;
  /** The body with NUL bytes and invalid UTF-8 replaced. */
  text: string;
  /** SHA-256 of the raw body, hex; made when it is asked for. */
  readonly digest: string;
  /**
   * Whether the signature covers the id in the headers, too; else whoever captured one delivery can send it again under
   * any id.
   */
  id_signed: boolean;
  /** Unix milliseconds. */
  received_at: number;
}

/** Whose record it is, still in the vendor's words. */
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
    }
  | { kind: 'shop'; shop_domain: string }
  /** It was heard over a connection, which is one account's. */
  | { kind: 'account'; account_id: string };

/** A record before its account is known. */
export interface DraftRecord extends Pick<
  RecordEnvelope,
  'type' | 'platform' | 'external_id' | 'same_raw' | 'former_id' | 'occurred_at' | 'subject' | 'subjects' | 'raw'
> {
  owner: Owner;
  topic: Topic;
}

/** Each delivery ends as one of these; a throw means that our side is broken. */
export type Outcome =
  /** Not empty. */
  | { kind: 'ok'; records: DraftRecord[] }
  /** Understood, and not ours to keep: 200, logged. */
  | { kind: 'skip'; reason: string; detail?: string }
  /** Could not be understood or kept: 200, and the dead letters hold it. */
  | { kind: 'park'; reason: string; detail: string }
  /** Refused for its content; only where the spec says so. */
  | { kind: 'refuse'; message: string };

export const ok = (...records: DraftRecord[]): Outcome => ({ kind: 'ok', records });
export const skip = (reason: string, detail?: string): Outcome => ({ kind: 'skip', reason, detail });
export const park = (reason: string, detail: string): Outcome => ({ kind: 'park', reason, detail });
export const refuse = (message: string): Outcome => ({ kind: 'refuse', message });

export const unauthorized = (message = 'Invalid webhook signature') => new ApiError('UNAUTHORIZED', message);

/** What a signature was found to cover beside the body. */
export type Verified = Pick<Delivery, 'id_signed'>;
export const BODY_ALONE: Verified = { id_signed: false };

/** One vendor's webhook: how it is verified, and how it is read. */
export interface WebhookVendor {
  vendor: Vendor;
  path: string;
  /** Left out of the OpenAPI document. Default false. */
  undescribed?: true;
  /** Headers, lower case, that {@link normalise} reads: kept beside a parked body. Signatures are not among them. */
  headers: readonly string[];
  /** Says what the signature covers. @throws ApiError 401 or 403. */
  verify(request: WebhookRequest, connections: ConnectionLookup, now: number): Promise<Verified>;
  normalise(delivery: Delivery): Outcome;
}

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

  // Few deliveries come without an id of their own.
  get digest(): string {
    return createHash('sha256').update(this.raw_body).digest('hex');
  }
}

/** A JSON delivery's stored copy and its parsed members, or why it must be parked. */
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

/** `kick:01J…`: a vendor's id with its slug. */
export function externalId(vendor: Vendor, ...parts: readonly string[]): string {
  const id = parts.length === 1 ? `${vendor}:${parts[0]}` : [vendor, ...parts].join(':');
  if (id.length <= MAX_EXTERNAL_ID) return id;
  return `${vendor}:sha256:${createHash('sha256').update(id).digest('hex')}`;
}

/**
 * For a delivery without any id: the same bytes are the same event. `salt` is what else tells two events apart (a
 * signed time).
 */
export function contentId(vendor: Vendor, delivery: Delivery, salt = ''): string {
  const hash = createHash('sha256').update(delivery.digest).update(salt).digest('hex');
  return `${vendor}:content:${hash.slice(0, 40)}`;
}

/** How a delivery is known again; `former_id` is left out where it is the id itself. */
export type Identity = Pick<DraftRecord, 'external_id' | 'same_raw' | 'former_id'>;

/** By an id that the signature covers. `unsigned`: the one beside it that the build before would have taken. */
export function signedIdentity(vendor: Vendor, signed: string, unsigned: string | null): Identity {
  const external_id = externalId(vendor, signed);
  const former_id = unsigned === null ? external_id : externalId(vendor, unsigned);
  return former_id === external_id ? { external_id } : { external_id, former_id };
}

/**
 * `kick:987654321`, or null when there is no such person in the payload (0 and empty are vendors' words for nobody).
 */
export function subjectOf(vendor: Vendor, id: unknown): string | null {
  const text = idText(id);
  return text === null || text === '0' ? null : externalId(vendor, text);
}

/** An id as text: vendors send numbers and strings for the same member. Null when it is neither, or empty. */
export function idText(value: unknown): string | null {
  if (typeof value === 'string') return value.trim() === '' ? null : value.trim();
  return typeof value === 'number' && Number.isFinite(value) ? String(value) : null;
}

/** Longest id that is remembered in memory or in the state of a connection: the vendors' own have 80 at most. */
const MAX_KEPT_ID = 200;

/** An id that may be remembered: {@link idText} of a believable length. */
export function keptId(value: unknown): string | null {
  const text = idText(value);
  return text === null || text.length > MAX_KEPT_ID ? null : text;
}

/** A number that is written as one or as text; NaN for everything else, an object that cannot be converted too. */
export const numberOf = (value: unknown): number => Number(idText(value) ?? Number.NaN);

/** A text; null when it is none, or empty. */
export const textOf = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);

/** A member that may be missing or of another type. */
export function member(value: unknown, ...path: readonly string[]): unknown {
  let at = value;
  for (const name of path) {
    if (at === null || typeof at !== 'object' || Array.isArray(at) || !Object.hasOwn(at, name)) return undefined;
    at = (at as Record<string, unknown>)[name];
  }
  return at;
}
