import type { Migration } from './index';

/**
 * Global feature flags become events. Values that operators had set by hand are kept aside until they are appended
 * (maintenance/upgrade/feature-flag-adoption.ts), because a migration cannot reach the event store.
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
