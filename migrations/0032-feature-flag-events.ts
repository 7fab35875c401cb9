import type { Migration } from './index';

/**
 * Global feature flags become events. What operators had set by hand is kept aside until it has been appended
 * (maintenance/feature-flag-adoption.ts): a migration cannot reach the event store.
 */
export const featureFlagEvents: Migration = {
  name: '0032-feature-flag-events',
  async up(knex) {
    await knex.raw(`
      create table feature_flags_before_events (
        key        text primary key,
        enabled    boolean not null,
        changed_at timestamptz not null
      );
      insert into feature_flags_before_events select key, enabled, changed_at from feature_flags;
    `);
  },
};
