import type { Migration } from './index';

/** The member for whom a popout token acts, in addition to the actor of an audit entry. */
export const actsFor: Migration = {
  name: '0300-acts-for',
  up: (knex) => knex.raw('alter table audit_log add column acts_for text'),
};
