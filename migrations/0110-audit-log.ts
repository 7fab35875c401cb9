import type { Migration } from './index';

/**
 * The audit log: entries in hash chains, the end of each chain, and the last values of each target. Personal values are
 * sealed in `personal`, under their keys in the events. Decision 0029.
 */
export const auditLog: Migration = {
  name: '0110-audit-log',
  up: (knex) =>
    knex.raw(`
      create table audit_log (
        chain       text not null,
        number      bigint not null,
        hash        text not null,
        id          uuid not null,
        account_id  text,
        action      text not null,
        actor_kind  text,
        actor_id    text,
        target_kind text not null,
        target_id   text not null,
        type        text not null,
        position    text not null,
        created_at  timestamptz not null,
        before      json,
        after       json,
        personal    json not null,
        primary key (chain, number)
      );
      create unique index audit_log_ids on audit_log (id);
      create index audit_log_newest on audit_log (chain, created_at, number);
      create index audit_log_times on audit_log (created_at, number, id);
      create index audit_log_actions on audit_log (chain, action, created_at, number);
      create index audit_log_all_actions on audit_log (action, created_at, number, id);
      create index audit_log_actors on audit_log (actor_id, created_at, number, id);
      create index audit_log_targets_newest on audit_log (target_id, created_at, number, id);

      create table audit_log_heads (
        chain  text primary key,
        number bigint not null,
        hash   text not null
      );

      create table audit_log_targets (
        chain    text not null,
        kind     text not null,
        id       text not null,
        part     text not null,
        members  json not null,
        personal json not null,
        primary key (chain, kind, id, part)
      )`),
};
