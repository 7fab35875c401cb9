import { createHash } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Vendor } from '../../../domain/common/vendors';
import type { Queryable } from '../../../engines/postgres/port';
import type { PersonalTexts } from '../../../privacy/subject-keys/port';
import { BODY, KEPT_DAYS, type KeptBody, mentionOf, opened, sealedBody } from './parked-bodies';

/** Headers of a message that came over a connection: the connection, its account and its channel. */
export const PARKED_CONNECTION = 'lumio-connection';
export const PARKED_ACCOUNT = 'lumio-account';
export const PARKED_CHANNEL = 'lumio-channel';

/** A delivery, or a message of a connection, to park. */
export interface ParkedDelivery {
  vendor: Vendor;
  /** A word: `bad_json`, `too_deep`, `bad_payload`, `too_large`, `not_storable` … */
  reason: string;
  /** For people; may quote the parser, never holds a secret. */
  detail: string;
  headers: Readonly<Record<string, string>>;
  raw_body: Buffer;
  /** The person whom it is about, where known: the body is sealed under their key. Default: unknown. */
  subject?: string | null;
  trace: string | null;
  /** Unix milliseconds. */
  received_at: number;
}

export interface ParkedWebhook extends Omit<ParkedDelivery, 'received_at' | 'raw_body' | 'subject'> {
  id: string;
  /** Null after the erasure of its subject, or after the expiry of its key. */
  raw_body: Buffer | null;
  status: 'parked' | 'retried' | 'dropped';
  /** Number of deliveries and retries that ended here. */
  attempts: number;
  /** RFC 3339 UTC. */
  first_received_at: string;
  last_received_at: string;
}

/** Stores deliveries that cannot be normalised or stored. */
export interface ParkedWebhookSink {
  /**
   * Durable when it resolves. A repeated delivery raises the attempts of the stored one, and parks it again when it was
   * settled.
   */
  park(delivery: ParkedDelivery): Promise<void>;
}

/** Operations for operators on parked deliveries. */
export interface ParkedWebhooks extends ParkedWebhookSink {
  /** Parked deliveries, oldest first, without their bodies. */
  list(filter?: { vendor?: Vendor; limit?: number }): Promise<Omit<ParkedWebhook, 'raw_body'>[]>;
  get(id: string): Promise<ParkedWebhook | null>;
  /** Settles a parked delivery; false when it was not parked. */
  settle(id: string, status: 'retried' | 'dropped'): Promise<boolean>;
  /** Records a failed retry. */
  failed(id: string, reason: string, detail: string): Promise<void>;
  /**
   * Deletes the vendor's deliveries, settled or not, whose body mentions this id of a person as a whole word, and those
   * that cannot be read any more. Returns their number.
   */
  erase(vendor: Vendor, person_id: string): Promise<number>;
  /** Whether a readable delivery of the vendor mentions this id of a person as a whole word. */
  mentions(vendor: Vendor, person_id: string): Promise<boolean>;
}

export interface ParkedWebhooksDeps {
  db: Queryable;
  /** Seals the bodies. */
  texts: PersonalTexts;
}

const COLUMNS = 'id, vendor, reason, detail, headers, trace, status, attempts, first_received_at, last_received_at';
const MAX_DETAIL = 500;
/** Bodies opened at once in an erasure: each may have megabytes. */
const OPENED_AT_ONCE = 16;

/** Parked webhooks in PostgreSQL (`ingest_dead_letters`). */
export function createParkedWebhooks({ db, texts }: ParkedWebhooksDeps): ParkedWebhooks {
  return {
    async park(delivery) {
      const key = deliveryKey(delivery);
      const { raw_body, key_id } = await sealedBody(
        texts,
        { ...delivery, place: delivery.headers[PARKED_CONNECTION] ?? 'webhook' },
        key,
      );
      await db.query(
        `insert into ingest_dead_letters as d
           (id, vendor, reason, detail, headers, raw_body, key_id, delivery_key, trace, first_received_at, last_received_at)
         values ($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9, $10, $10)
         on conflict (delivery_key) do update set
           attempts = d.attempts + 1, status = 'parked', settled_at = null, trace = excluded.trace,
           reason = excluded.reason, detail = excluded.detail, last_received_at = excluded.last_received_at,
           raw_body = excluded.raw_body, key_id = excluded.key_id`,
        [
          uuidv7(),
          delivery.vendor,
          delivery.reason,
          shorten(delivery.detail),
          JSON.stringify(delivery.headers),
          raw_body,
          key_id,
          key,
          delivery.trace,
          new Date(delivery.received_at).toISOString(),
        ],
      );
    },
    async list({ vendor, limit = 100 } = {}) {
      return db.query<Omit<ParkedWebhook, 'raw_body'>>(
        `select ${COLUMNS} from ingest_dead_letters where status = 'parked' and ($1::text is null or vendor = $1)
           order by id limit $2`,
        [vendor ?? null, limit],
      );
    },
    async get(id) {
      const [row] = await db.query<Omit<ParkedWebhook, 'raw_body'> & KeptBody>(
        `select ${COLUMNS}, ${BODY} from ingest_dead_letters where id = $1`,
        [id],
      );
      if (row === undefined) return null;
      const { key_id: _key_id, delivery_key: _key, ...letter } = row;
      return { ...letter, raw_body: (await opened(texts, [row]))[0]! };
    },
    async settle(id, status) {
      const rows = await db.query(
        `update ingest_dead_letters set status = $2, settled_at = now() where id = $1 and status = 'parked'
           returning id`,
        [id, status],
      );
      return rows.length === 1;
    },
    async failed(id, reason, detail) {
      await db.query(
        `update ingest_dead_letters set attempts = attempts + 1, reason = $2, detail = $3 where id = $1
           and status = 'parked'`,
        [id, reason, shorten(detail)],
      );
    },
    async erase(vendor, person_id) {
      const mentions = mentionOf(person_id);
      let erased = 0;
      for await (const some of bodiesOf({ db, texts }, vendor)) {
        const theirs = some.filter(({ body }) => body === null || mentions(body)).map(({ id }) => id);
        if (theirs.length > 0) await db.query('delete from ingest_dead_letters where id = any($1::uuid[])', [theirs]);
        erased += theirs.length;
      }
      return erased;
    },
    async mentions(vendor, person_id) {
      const mentions = mentionOf(person_id);
      for await (const some of bodiesOf({ db, texts }, vendor))
        if (some.some(({ body }) => body !== null && mentions(body))) return true;
      return false;
    },
  };
}

/** All bodies of a vendor's deliveries, some at a time; null for those that cannot be read any more. */
async function* bodiesOf(
  { db, texts }: ParkedWebhooksDeps,
  vendor: Vendor,
): AsyncGenerator<{ id: string; body: Buffer | null }[]> {
  let after: string | null = null;
  for (;;) {
    const rows: ({ id: string } & KeptBody)[] = await db.query(
      `select id, ${BODY} from ingest_dead_letters
       where vendor = $1 and ($2::uuid is null or id > $2::uuid) order by id limit ${OPENED_AT_ONCE}`,
      [vendor, after],
    );
    const bodies = await opened(texts, rows);
    yield rows.map(({ id }, n) => ({ id, body: bodies[n]! }));
    if (rows.length < OPENED_AT_ONCE) return;
    after = rows.at(-1)!.id;
  }
}

/** Deletes deliveries last received more than {@link KEPT_DAYS} ago, settled or not. Returns their number. */
export async function trimParkedWebhooks(db: Queryable): Promise<number> {
  const rows = await db.query(
    'delete from ingest_dead_letters where last_received_at < now() - make_interval(days => $1) returning id',
    [KEPT_DAYS],
  );
  return rows.length;
}

function deliveryKey({ vendor, headers, raw_body }: ParkedDelivery): string {
  const names = Object.keys(headers).sort();
  const facts = JSON.stringify([vendor, names.map((name) => [name, headers[name]])]);
  return createHash('sha256').update(facts).update(raw_body).digest('hex');
}

/** Errors may quote the very text that could not be stored. */
function shorten(detail: string): string {
  return Buffer.from(detail.replaceAll('\0', '\ufffd').slice(0, MAX_DETAIL)).toString();
}
