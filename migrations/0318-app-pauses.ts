import type { Migration } from './index';

/** Pauses of apps that a vendor has limited, for all processes. */
export const appPauses: Migration = {
  name: '0318-app-pauses',
  up: (knex) =>
    knex.raw(`
      create table app_pauses (
        vendor    text not null,
        client_id text not null,
        until     timestamptz not null,
        primary key (vendor, client_id)
      )`),
};
