import type { Migration } from './index';

/**
 * Work that processes divide among themselves (engines/leases/shares.ts). A member is alive while its session holds its
 * advisory lock, and its last renewal is recent. Offered names are distributed evenly over the members that offer them:
 * each name is assigned to one, and held until its holder releases it.
 */
export const workShares: Migration = {
  name: '0046-work-shares',
  async up(knex) {
    await knex.raw(`
      create table work_members (
        member       uuid primary key,
        session_lock bigint not null,
        names        text[] not null,
        renewed_at   timestamptz not null
      );
      create table work_holds (
        name   text primary key,
        member uuid not null
      );
    `);
  },
};
