import type { Migration } from './index';

/**
 * Blobs of uploads whose request has not ended yet. One that stays here is of a process that died: what nothing names
 * is deleted (maintenance/upload-sweep.ts).
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
