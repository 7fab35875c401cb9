import type { Migration } from './index';

/**
 * Secrets by which webhooks of automations are signed, and automations whose webhooks fail, outside every rebuild. A
 * secret without `active_since` waits for its event.
 */
export const automationWebhooks: Migration = {
  name: '0647-automation-webhooks',
  up: (knex) =>
    knex.raw(`
      create table automation_webhook_secrets (
        automation_id uuid not null,
        secret_hash   text not null,
        account_id    uuid not null,
        sealed        text not null,
        created_at    timestamptz not null default clock_timestamp(),
        active_since  timestamptz,
        ends_at       timestamptz,
        primary key (automation_id, secret_hash)
      );
      create unique index automation_webhook_secrets_present on automation_webhook_secrets (automation_id)
        where active_since is not null and ends_at is null;
      create index automation_webhook_secrets_account on automation_webhook_secrets (account_id);

      create table automation_webhook_failures (
        automation_id  uuid primary key,
        account_id     uuid not null,
        failing_since  timestamptz not null,
        last_failed_at timestamptz not null
      );
      create index automation_webhook_failures_account on automation_webhook_failures (account_id);
      create index automation_webhook_failures_since on automation_webhook_failures (failing_since)`),
};
