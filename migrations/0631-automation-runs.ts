import type { Migration } from './index';

/**
 * Runs of automations and their steps, outside every rebuild, and the bounds of accounts. `cause` and `input` are
 * sealed under the key of the cause's person, or JSON text where `…_key_id` is null; `persons` are keyed hashes.
 */
export const automationRuns: Migration = {
  name: '0631-automation-runs',
  up: (knex) =>
    knex.raw(`
      create table automation_accounts (
        account_id uuid primary key,
        minute     timestamptz,
        started    integer not null default 0,
        dropped    integer not null default 0
      );
      create index automation_accounts_dropped on automation_accounts (account_id) where dropped > 0;

      create table automation_runs (
        id            uuid primary key,
        account_id    uuid not null,
        automation_id uuid,
        reward_id     uuid,
        start_key     text not null unique,
        admitted      boolean not null,
        status        text not null,
        trigger       text not null,
        node_ids      uuid[] not null,
        event_id      uuid,
        depth         integer not null,
        error         text,
        second_run    text not null,
        graph         json not null,
        cause_key_id  text,
        cause         text,
        persons       text[] not null,
        permissions   text[],
        window_ms     integer not null,
        expires_at    timestamptz not null,
        step_count    integer not null default 0,
        created_at    timestamptz not null,
        started_at    timestamptz,
        finished_at   timestamptz
      );
      create index automation_runs_newest on automation_runs (automation_id, created_at desc, id desc);
      create index automation_runs_active on automation_runs (account_id, created_at, id)
        where status in ('pending', 'running', 'waiting');
      create index automation_runs_persons on automation_runs using gin (persons);
      create index automation_runs_created on automation_runs (created_at);

      create table automation_steps (
        id           uuid primary key,
        run_id       uuid not null references automation_runs (id) on delete cascade,
        number       integer not null,
        node_id      uuid not null,
        type         text not null,
        status       text not null,
        output       text,
        input_key_id text,
        input        text,
        error        text,
        expires_at   timestamptz not null,
        started_at   timestamptz,
        finished_at  timestamptz
      );
      create index automation_steps_run on automation_steps (run_id, number);

      create table automation_cooldowns (
        automation_id uuid not null,
        node_id       uuid not null,
        person        text not null,
        account_id    uuid not null,
        used_at       timestamptz not null,
        expires_at    timestamptz not null,
        primary key (automation_id, node_id, person)
      );
      create index automation_cooldowns_person on automation_cooldowns (person) where person <> '';
      create index automation_cooldowns_account on automation_cooldowns (account_id);
      create index automation_cooldowns_expires on automation_cooldowns (expires_at)`),
};
