import type { Migration } from './index';

/** Whether the alerts of overlays and widgets wait, and whether they are silent. */
export const alertControls: Migration = {
  name: '0595-alert-controls',
  up: (knex) =>
    knex.raw(`
      alter table overlays
        add column alerts_paused boolean not null default false,
        add column alerts_muted boolean not null default false;
      alter table widgets
        add column alerts_paused boolean not null default false,
        add column alerts_muted boolean not null default false`),
};
