import type { Migration } from './index';

/** Due times of the schedule triggers of enabled automations, outside every rebuild. */
export const automationSchedules: Migration = {
  name: '0646-automation-schedules',
  up: (knex) =>
    knex.raw(`
      create table automation_schedules (
        automation_id uuid not null,
        node_id       uuid not null,
        account_id    uuid not null,
        schedule      json not null,
        next_due_at   timestamptz not null,
        primary key (automation_id, node_id)
      );
      create index automation_schedules_due on automation_schedules (next_due_at);
      create index automation_schedules_account on automation_schedules (account_id)`),
};
