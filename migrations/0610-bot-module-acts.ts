import type { Migration } from './index';

/**
 * Acts of bot modules on lines of chats, by the id of the line's record, which no rebuild touches: they decide about
 * later warnings. `person` is the keyed hash of the line's person.
 */
export const botModuleActs: Migration = {
  name: '0610-bot-module-acts',
  up: (knex) =>
    knex.raw(`
      create table bot_module_acts (
        account_id  uuid not null,
        id          uuid not null,
        person      text not null,
        module_name text not null,
        is_warning  boolean not null,
        status      text not null default 'asked',
        acted_at    timestamptz not null,
        expires_at  timestamptz not null,
        primary key (account_id, id)
      );
      create index bot_module_acts_warnings on bot_module_acts (account_id, person, acted_at) where is_warning;
      create index bot_module_acts_person on bot_module_acts (person);
      create index bot_module_acts_expires on bot_module_acts (expires_at);
      create index bot_command_user_uses_command on bot_command_user_uses (command_id)`),
};
