import { createHash } from 'node:crypto';
import { v7 as uuidv7 } from 'uuid';
import type { Vendor } from '../../domain/vendors';
import type { Queryable } from '../../engines/postgres/port';

/** A delivery that is to be parked. */
export interface ParkedDelivery {
  vendor: Vendor;
  /** A word: `bad_json`, `too_deep`, `bad_payload`, `too_large`, `not_storable` … */
  reason: string;
  /** For a person; may quote the parser, never holds a secret. */
  detail: string;
  headers: Readonly<Record<string, string>>;
  raw_body: Buffer;
  trace: string | null;
  /** Unix milliseconds. */
  received_at: number;
}

export interface ParkedWebhook extends Omit<ParkedDelivery, 'received_at'> {
  id: string;
  status: 'parked' | 'retried' | 'dropped';
  /** Deliveries and retries that ended here. */
  attempts: number;
  /** RFC 3339 UTC. */
  first_received_at: string;
  last_received_at: string;
}

/** Where deliveries go that cannot be normalised or stored. */
export interface ParkedWebhookSink {
  /**
   * Durable when it resolves. The same delivery again raises the attempts of the one that is there, and parks it anew
   * when it had been settled.
   */
  park(delivery: ParkedDelivery): Promise<void>;
}

/** What operators do with them. */
export interface ParkedWebhooks extends ParkedWebhookSink {
  /** Parked ones, oldest first, without their bodies. */
  list(filter?: { vendor?: Vendor; limit?: number }): Promise<Omit<ParkedWebhook, 'raw_body'>[]>;
  get(id: string): Promise<ParkedWebhook | null>;
  /** True when it was parked until now. */
  settle(id: string, status: 'retried' | 'dropped'): Promise<boolean>;
  /** A retry that failed again. */
  failed(id: string, reason: string, detail: string): Promise<void>;
  /**
   * Deletes those of the vendor, settled or not, whose body mentions this id of a person as a word of its own. Returns
   * how many.
   */
  erase(vendor: Vendor, person_id: string): Promise<number>;
  /**
   * Deletes those last received more than `age_ms` ago, settled or not: bodies hold personal data. Returns how many.
   */
  trim(age_ms: number): Promise<number>;
}

const COLUMNS = 'id, vendor, reason, detail, headers, trace, status, attempts, first_received_at, last_received_at';
const MAX_DETAIL = 500;

/** Parked webhooks in PostgreSQL (`ingest_dead_letters`). */
export function createParkedWebhooks({ db }: { db: Queryable }): ParkedWebhooks {
  return {
    async park(delivery) {
      await db.query(
        `insert into ingest_dead_letters as d
           (id, vendor, reason, detail, headers, raw_body, delivery_key, trace, first_received_at, last_received_at)
         values ($1, $2, $3, $4, $5::jsonb, $6, $7, $8, $9, $9)
         on conflict (delivery_key) do update set
           attempts = d.attempts + 1, status = 'parked', settled_at = null, trace = excluded.trace,
           reason = excluded.reason, detail = excluded.detail, last_received_at = excluded.last_received_at`,
        [
          uuidv7(),
          delivery.vendor,
          delivery.reason,
          shorten(delivery.detail),
          JSON.stringify(delivery.headers),
          delivery.raw_body,
          deliveryKey(delivery),
          delivery.trace,
          new Date(delivery.received_at).toISOString(),
        ],
      );
    },
    async list({ vendor, limit = 100 } = {}) {
      return db.query<Omit<ParkedWebhook, 'raw_body'>>(
        `select ${COLUMNS} from ingest_dead_letters where status = 'parked' and ($1::text is null or vendor = $1) order by id limit $2`,
        [vendor ?? null, limit],
      );
    },
    async get(id) {
      const rows = await db.query<ParkedWebhook>(`select ${COLUMNS}, raw_body from ingest_dead_letters where id = $1`, [
        id,
      ]);
      return rows[0] ?? null;
    },
    async settle(id, status) {
      const rows = await db.query(
        `update ingest_dead_letters set status = $2, settled_at = now() where id = $1 and status = 'parked' returning id`,
        [id, status],
      );
      return rows.length === 1;
    },
    async failed(id, reason, detail) {
      await db.query(
        `update ingest_dead_letters set attempts = attempts + 1, reason = $2, detail = $3 where id = $1 and status = 'parked'`,
        [id, reason, shorten(detail)],
      );
    },
    async erase(vendor, person_id) {
      const found = await db.query<{ id: string; raw_body: Buffer }>(
        "select id, raw_body from ingest_dead_letters where vendor = $1 and position(convert_to($2, 'UTF8') in raw_body) > 0",
        [vendor, person_id],
      );
      // 123 in 91234 is another person's.
      const word = new RegExp(`(?<![\\w-])${person_id.replace(/[^\w]/g, '\\$&')}(?![\\w-])`);
      const theirs = found.filter(({ raw_body }) => word.test(raw_body.toString())).map(({ id }) => id);
      await db.query('delete from ingest_dead_letters where id = any($1)', [theirs]);
      return theirs.length;
    },
    async trim(age_ms) {
      const rows = await db.query(
        `delete from ingest_dead_letters where last_received_at < now() - make_interval(secs => $1) returning id`,
        [age_ms / 1000],
      );
      return rows.length;
    },
  };
}

function deliveryKey({ vendor, headers, raw_body }: ParkedDelivery): string {
  const names = Object.keys(headers).sort();
  const facts = JSON.stringify([vendor, names.map((name) => [name, headers[name]])]);
  return createHash('sha256').update(facts).update(raw_body).digest('hex');
}

/** Errors quote what they met, which may be what could not be stored in the first place. */
function shorten(detail: string): string {
  return Buffer.from(detail.replaceAll('\0', '\ufffd').slice(0, MAX_DETAIL)).toString();
}
