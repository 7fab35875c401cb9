import type { Migration } from './index';

/** Bytes of the events that an account emitted in the last day on which it emitted any, outside every rebuild. */
export const emittedBytes: Migration = {
  name: '0660-emitted-bytes',
  up: (knex) =>
    knex.raw(`
      create table emitted_bytes (
        account_id uuid primary key,
        day        date not null,
        bytes      bigint not null
      )`),
};
