import type { Migration } from './index';

/**
 * Read models of commands of bots, and the counts and cooldowns of their uses, which no rebuild touches. `person` is
 * the keyed hash of a record's person.
 */
export const botCommands: Migration = {
  name: '0540-bot-commands',
  up: (knex) =>
    knex.raw(`
      create table bot_commands (
        id              uuid primary key,
        account_id      uuid,
        name            text not null,
        name_key        text not null,
        alias           text,
        alias_key       text,
        description     text,
        response_type   text not null,
        response        text,
        automation_id   uuid,
        platforms       text[] not null,
        min_role        text not null,
        cooldown_global integer not null,
        cooldown_user   integer not null,
        discord_form    text not null,
        enabled         boolean not null,
        created_at      timestamptz not null,
        updated_at      timestamptz not null
      );
      create index bot_commands_account on bot_commands (account_id, created_at, id);
      create index bot_commands_name on bot_commands (account_id, name_key);
      create index bot_commands_alias on bot_commands (account_id, alias_key) where alias_key is not null;

      create table bot_command_overrides (
        account_id      uuid not null,
        command_id      uuid not null,
        response        text,
        platforms       text[],
        min_role        text,
        cooldown_global integer,
        cooldown_user   integer,
        enabled         boolean,
        primary key (account_id, command_id)
      );
      create index bot_command_overrides_command on bot_command_overrides (command_id);

      create table bot_command_uses (
        account_id   uuid not null,
        command_id   uuid not null,
        use_count    bigint not null default 0,
        last_used_at timestamptz,
        primary key (account_id, command_id)
      );
      create index bot_command_uses_command on bot_command_uses (command_id);

      create table bot_command_user_uses (
        account_id uuid not null,
        command_id uuid not null,
        person     text not null,
        used_at    timestamptz not null,
        expires_at timestamptz not null,
        primary key (account_id, command_id, person)
      );
      create index bot_command_user_uses_person on bot_command_user_uses (person);
      create index bot_command_user_uses_expires on bot_command_user_uses (expires_at)`),
};
