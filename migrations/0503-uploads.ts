import type { Migration } from './index';

/** Files of accounts for overlays, widgets and alerts. */
export const uploads: Migration = {
  name: '0503-uploads',
  up: (knex) =>
    knex.raw(`
      create table uploads (
        id           uuid primary key,
        account_id   uuid not null,
        filename     text not null,
        content_type text not null,
        size_bytes   bigint not null,
        storage_key  text not null,
        sha256       text not null,
        purpose      text not null,
        created_at   timestamptz not null
      );
      create index uploads_account on uploads (account_id, created_at desc, id);
      create index uploads_storage_key on uploads (storage_key)`),
};
