import type { Migration } from './index';

/**
 * Files of the lake: one of a UTC day of a partition. A file is written again while `version` differs from
 * `written_version`, from `rewrite_at` on: after an erasure, processes may hold the person's keys until then.
 * `accounts` are those with rows in the written file.
 */
export const lake: Migration = {
  name: '0601-lake',
  up: (knex) =>
    knex.raw(`
      create table lake_files (
        engine          text not null,
        topic           text not null,
        partition       integer not null,
        day             date not null,
        from_offset     bigint not null,
        to_offset       bigint not null,
        version         bigint not null default 1,
        written_version bigint not null default 0,
        rewrite_at      timestamptz not null default '-infinity',
        persons         text not null,
        accounts        uuid[] not null default '{}',
        primary key (engine, topic, partition, day)
      );
      create index lake_files_accounts on lake_files using gin (accounts);
      create index lake_files_offsets on lake_files (topic, partition, from_offset, to_offset)`),
};
