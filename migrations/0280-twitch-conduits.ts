import type { Migration } from './index';

/**
 * Conduits of Twitch apps (ingest/twitch/conduit): one row per app, `conduit_id` null while it is being made, `others`
 * the app's conduits before that. A subscription's row without an id is refused, or has ended; `consent` is the login
 * that Twitch refused it for; `asked` marks a request to Twitch without a known answer.
 */
export const twitchConduits: Migration = {
  name: '0280-twitch-conduits',
  up: (knex) =>
    knex.raw(`
      create table twitch_conduits (
        client_id     text primary key,
        conduit_id    text,
        shard_count   integer not null,
        others        text[] not null default '{}',
        receives_from timestamptz,
        checked_at    timestamptz,
        checks        integer not null default 0,
        sessions      jsonb not null default '{}',
        gaps          integer not null default 0,
        gap_from      timestamptz,
        gap_to        timestamptz
      );
      create table twitch_conduit_subscriptions (
        conduit_id      text not null,
        channel_id      text not null,
        name            text not null,
        subscription_id text,
        since           text,
        refused         text,
        consent         text,
        asked           boolean not null default false,
        seen_at         timestamptz not null,
        changed_at      timestamptz not null,
        primary key (conduit_id, channel_id, name)
      );
      create index twitch_conduit_subscriptions_id on twitch_conduit_subscriptions (subscription_id);
      create index twitch_conduit_subscriptions_changed on twitch_conduit_subscriptions (conduit_id, changed_at)`),
};
