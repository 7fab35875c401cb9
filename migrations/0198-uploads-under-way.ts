import type { Migration } from './index';

/**
 * Blobs of uploads in progress. A row that stays belongs to a dead process: its unreferenced blob is deleted
 * (maintenance/retention/upload-sweep.ts).
 */
export const uploadsUnderWay: Migration = {
  name: '0198-uploads-under-way',
  up: (knex) =>
    knex.raw(`
      create table uploads_under_way (
        key      text primary key,
        begun_at timestamptz not null default now()
      )`),
};
