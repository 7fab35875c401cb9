import type { Migration } from './index';

/** Read models of automations, and of their triggers. */
export const automations: Migration = {
  name: '0630-automations',
  up: (knex) =>
    knex.raw(`
      create table automations (
        id              uuid primary key,
        account_id      uuid not null,
        name            text not null,
        description     text,
        enabled         boolean not null,
        second_run      text not null,
        revision        integer not null,
        disabled_reason text,
        graph           json not null,
        created_at      timestamptz not null,
        updated_at      timestamptz not null
      );
      create index automations_account on automations (account_id, created_at, id);

      create table automation_triggers (
        automation_id uuid not null,
        node_id       uuid not null,
        account_id    uuid not null,
        type          text not null,
        matches       text[] not null,
        config        json not null,
        primary key (automation_id, node_id)
      );
      create index automation_triggers_account on automation_triggers (account_id, type)`),
};
