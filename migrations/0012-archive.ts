import type { Migration } from './index';

/**
 * Archived records in the blob store, by log (design §6). The archiver writes a row after the segment was uploaded and
 * read back; only then may the log drop its records. Offsets mean nothing without their log, so `engine` names it.
 */
export const archive: Migration = {
  name: '0012-archive',
  async up(knex) {
    await knex.raw(`
      create table archive_segments (
        engine            text not null,
        topic             text not null,
        partition         integer not null,
        -- First offset that the segment answers for, and the one after its last: segments of a partition follow each other.
        from_offset       bigint not null,
        to_offset         bigint not null check (to_offset > from_offset),
        records           bigint not null,
        size_bytes        bigint not null,
        sha256            text not null,
        blob_key          text not null,
        first_appended_at timestamptz not null,
        last_appended_at  timestamptz not null,
        archived_at       timestamptz not null default clock_timestamp(),
        primary key (engine, topic, partition, from_offset)
      );
    `);
  },
};
