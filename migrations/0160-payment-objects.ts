import type { Migration } from './index';

/** Current state of payment vendors' objects, by the vendors' own times. */
export const paymentObjects: Migration = {
  name: '0160-payment-objects',
  up: (knex) =>
    knex.raw(`
      create table payment_objects (
        vendor            text not null,
        source            text not null,
        object_id         text not null,
        kind              text not null,
        connected_account text,
        customer          text,
        livemode          boolean not null,
        status            text,
        ended             boolean not null,
        happened_at       timestamptz not null,
        rank              bigint not null,
        facts             jsonb not null,
        event_type        text not null,
        record_id         uuid not null,
        primary key (vendor, source, object_id)
      );
      create index payment_objects_customer on payment_objects (customer);
      create index payment_objects_record on payment_objects (record_id)`),
};
