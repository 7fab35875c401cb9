import type { Migration } from './index';

/**
 * Subject keys (design §5). Only these keys make personal data readable, so these three tables are left out of `lumio
 * backup`, exported separately, and kept with short retention: an erased key must not return with an old backup.
 * `subject_keys` names a subject by a keyed hash, whose key is in `subject_hash_key`; every key is wrapped by a master
 * key. `subject_key_erasures` lists for other nodes the keys to forget; its `seq` is in commit order.
 */
export const subjectKeys: Migration = {
  name: '0004-keys',
  async up(knex) {
    await knex.raw(`
      create table subject_keys (
        key_id       uuid primary key,
        subject_hash bytea not null unique,
        wrapped_key  text not null,
        created_at   timestamptz not null default now()
      );
      create table subject_hash_key (
        only_row    boolean primary key default true check (only_row),
        wrapped_key text not null
      );
      create table subject_key_erasures (
        seq       bigint generated always as identity primary key,
        key_id    uuid not null,
        erased_at timestamptz not null default now()
      );
    `);
  },
};
