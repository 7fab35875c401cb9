import type { Migration } from './index';

/**
 * New flags of widgets and bot modules for plans that enable another flag of the category, kept aside until they are
 * appended (maintenance/upgrade/plan-flag-adoption.ts). A plan that is made later has the flags that its operator sets.
 */
export const studioFlags: Migration = {
  name: '0502-studio-flags',
  up: (knex) =>
    knex.raw(`
      create table plan_flags_to_adopt (
        plan_id uuid not null,
        flag    text not null,
        primary key (plan_id, flag)
      );
      insert into plan_flags_to_adopt (plan_id, flag)
      select distinct f.plan_id, added.flag
      from plan_features f
        join unnest(array['widget:alert_box', 'widget:text', 'widget:image', 'widget:timer',
          'bot_module:spam_protection', 'bot_module:word_filter', 'bot_module:timed_messages']) as added (flag)
          on split_part(added.flag, ':', 1) = split_part(f.flag, ':', 1)
      where f.enabled`),
};
