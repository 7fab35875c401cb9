import type { Migration } from './index';

/**
 * Places with records of erased persons in files of the lake that hold persons in clear, until the files are written
 * again. They serve the rows whose records the log has dropped.
 */
export const lakeErasures: Migration = {
  name: '0677-lake-erasures',
  up: (knex) =>
    knex.raw(`
      create table lake_erasures (
        engine      text not null,
        topic       text not null,
        partition   integer not null,
        from_offset bigint not null,
        to_offset   bigint not null,
        primary key (engine, topic, partition, from_offset, to_offset)
      )`),
};
