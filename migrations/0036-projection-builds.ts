import type { Migration } from './index';

/**
 * Progress of a build of new tables, so that an interrupted build can continue. Every change of live rows other than
 * from their source deletes it, because the tables built so far lack that change. Decision 0014.
 */
export const projectionBuilds: Migration = {
  name: '0036-projection-builds',
  async up(knex) {
    await knex.raw(`
      create table projection_builds (
        projection text primary key,
        version    integer not null,
        engine     text not null,
        -- Of the program that the rows follow from, and of the tables' shape: another one begins anew.
        program    text not null,
        -- Of the shadow schema that belongs to it.
        token      uuid not null,
        -- What is done for all rows at once has not been done yet.
        loading    boolean not null default true,
        started_at timestamptz not null default clock_timestamp()
      );
      create table projection_build_places (
        projection text not null,
        partition  integer not null,
        position   text not null,
        records    bigint not null,
        updated_at timestamptz not null default clock_timestamp(),
        primary key (projection, partition)
      ) with (fillfactor = 50);
    `);
  },
};
