import type { Migration } from './index';

/**
 * Variables of automations, outside every rebuild. A row without a type is a name that a command has claimed before its
 * event. `value` is JSON text; a personal text is sealed instead.
 */
export const automationVariables: Migration = {
  name: '0645-automation-variables',
  up: (knex) =>
    knex.raw(`
      create table automation_variables (
        account_id uuid not null,
        name       text not null,
        type       text,
        value      text,
        key_id     text,
        sealed     text,
        person     text,
        updated_at timestamptz not null default clock_timestamp(),
        primary key (account_id, name)
      );
      create index automation_variables_person on automation_variables (person) where person is not null`),
};
