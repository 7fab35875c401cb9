import type { Migration } from './index';

/** Sounds of accounts; `blob_key` is the key of the audio. */
export const sounds: Migration = {
  name: '0394-sounds',
  up: (knex) =>
    knex.raw(`
      create table sounds (
        id           uuid primary key,
        account_id   uuid not null,
        name         text not null,
        filename     text not null,
        content_type text not null,
        size_bytes   bigint not null,
        duration_ms  bigint,
        waveform     jsonb,
        blob_key     text not null,
        sha256       text not null,
        created_at   timestamptz not null
      );
      create index sounds_account on sounds (account_id, created_at desc, id);
      create index sounds_blob on sounds (blob_key)`),
};
