import { readPayment } from '../../domain/billing/payments';
import { ERASED_RAW, TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { projection, topic } from '../../kernel/projection';

const COLUMNS = `vendor, source, object_id, kind, connected_account, customer, livemode, status, ended, happened_at, rank,
  facts, event_type, record_id`;
const CHANGED = COLUMNS.split(/,\s*/)
  .slice(3)
  .map((name) => `${name} = excluded.${name}`)
  .join(', ');

/**
 * Current state of Stripe's and PayPal's objects, by the vendors' own times: a late event never undoes a later one, and
 * nothing undoes an end (a subscription that was deleted). Of two events with equal time and rank the later arrival
 * wins. Source: spec doc3 §4.2.
 */
export const paymentObjects = projection({
  name: 'payment-objects',
  version: 1,
  from: topic(TOPICS.webhook_events),
  tables: ['payment_objects'],
  async apply(batch: readonly LoggedRecord[], tx: Queryable) {
    const rows = batch
      .filter(({ raw }) => raw !== ERASED_RAW)
      .map((record, came) => ({
        ...readPayment(record.type, record.raw),
        vendor: record.platform,
        event_type: record.type,
        record_id: record.id,
        came,
      }));
    await tx.query(
      `insert into payment_objects as o (${COLUMNS})
       select distinct on (vendor, source, object_id) ${COLUMNS}
       from jsonb_to_recordset($1::jsonb) as e (
         vendor text, source text, object_id text, kind text, connected_account text, customer text, livemode boolean,
         status text, ended boolean, happened_at timestamptz, rank bigint, facts jsonb, event_type text, record_id uuid,
         came int)
       order by vendor, source, object_id, ended desc, happened_at desc, rank desc, came desc
       on conflict (vendor, source, object_id) do update set ${CHANGED}
         where (excluded.ended, excluded.happened_at, excluded.rank) >= (o.ended, o.happened_at, o.rank)`,
      [JSON.stringify(rows)],
      'payment-objects',
    );
    return [];
  },
});
