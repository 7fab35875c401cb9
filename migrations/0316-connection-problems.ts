import type { Migration } from './index';

/**
 * Problems of connections with valid tokens: event types that a vendor refuses to deliver, and the times in which no
 * process accepted webhooks. `webhook_door` has one row.
 */
export const connectionProblems: Migration = {
  name: '0316-connection-problems',
  up: (knex) =>
    knex.raw(`
      alter table connection_grants add column subscription_problem text;
      create table webhook_door (
        one      boolean primary key default true check (one),
        open_at  timestamptz not null,
        gap_from timestamptz,
        gap_to   timestamptz
      )`),
};
