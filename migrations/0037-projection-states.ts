import type { Migration } from './index';

/** Last report of each process about each projection, for `lumio projections`; reports of ended processes stay. */
export const projectionStates: Migration = {
  name: '0037-projection-states',
  async up(knex) {
    await knex.raw(`
      create table projection_states (
        projection  text not null,
        -- A process, for the time that it runs.
        holder      uuid not null,
        version     integer not null,
        state       text not null,
        -- Records or events applied a second, since it last said.
        rate        real not null,
        observed_at timestamptz not null default clock_timestamp(),
        primary key (projection, holder)
      ) with (fillfactor = 50);
    `);
  },
};
