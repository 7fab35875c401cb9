import type { Migration } from './index';

/** Exports of events that are being sent, one of an account. The row of a process that has died ends by its time. */
export const runningExports: Migration = {
  name: '0522-running-exports',
  up: (knex) =>
    knex.raw(`
      create table running_exports (
        account_id uuid primary key,
        token      uuid not null,
        ends_at    timestamptz not null
      )`),
};
