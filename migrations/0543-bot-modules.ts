import type { Migration } from './index';

/** The read model of bot modules, schedules of accounts, and the place in the turn of timed messages. */
export const botModules: Migration = {
  name: '0543-bot-modules',
  up: (knex) =>
    knex.raw(`
      create table bot_modules (
        account_id   uuid not null,
        module_name  text not null,
        enabled      boolean not null,
        config       jsonb not null,
        exempt_roles text[] not null,
        primary key (account_id, module_name)
      );

      create table account_schedules (
        owner            text primary key,
        account_id       uuid not null,
        job              text not null,
        interval_seconds integer not null check (interval_seconds > 0),
        next_due_at      timestamptz not null
      );
      create index account_schedules_due on account_schedules (next_due_at);
      create index account_schedules_account on account_schedules (account_id);

      create table timed_messages (
        account_id uuid not null,
        platform   text not null,
        sent       integer not null,
        sent_at    timestamptz not null,
        primary key (account_id, platform)
      )`),
};
