import type { Migration } from './index';

/**
 * Positions of each subject's personal parts, so that an erasure searches only there: blocks of offsets of a topic's
 * partition, archived or not, and streams of domain events. `subject_sources` has the progress of reading each source.
 * All rows derive from the logs.
 */
export const subjectPlaces: Migration = {
  name: '0070-subject-places',
  async up(knex) {
    await knex.raw(`
      create table subject_sources (
        id        integer generated always as identity primary key,
        source    text not null,
        engine    text not null,
        partition integer not null,
        position  text,
        unique (source, engine, partition)
      );
      create table subject_places (
        subject   bytea not null,
        source_id integer not null,
        block     bigint not null,
        primary key (subject, source_id, block)
      );
      create table subject_streams (
        subject   bytea not null,
        source_id integer not null,
        stream    text not null,
        primary key (subject, source_id, stream)
      );
    `);
  },
};
