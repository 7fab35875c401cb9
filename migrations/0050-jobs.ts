import type { Migration } from './index';

/**
 * Our own tables besides the job library's schema (graphile_worker, installed by engines/jobs/schema.ts after the
 * steps): the keys of finished jobs, and the holders of running jobs. Decision 0018.
 */
export const jobs: Migration = {
  name: '0050-jobs',
  async up(knex) {
    await knex.raw(`
      -- Written in the transaction of a job's effect, so that a key never counts twice.
      create table finished_jobs (
        key         text primary key,
        finished_at timestamptz not null default now(),
        -- Null: for ever.
        kept_until  timestamptz
      );
      create index finished_jobs_kept_until on finished_jobs (kept_until) where kept_until is not null;

      create table job_holders (
        -- What the library writes into locked_by.
        pool       text primary key,
        -- The advisory lock of the process: free when it is dead.
        lock       bigint not null,
        dead_since timestamptz
      );
    `);
  },
};
