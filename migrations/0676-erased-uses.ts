import type { Migration } from './index';

/**
 * Uses of emotes and GIFs that an erasure takes from the chats of finished sessions, by minute and author's key, and
 * ids of erased messages from other channels' rooms. Figures keep the former and leave out the latter. No rebuild can
 * make them of records that nobody can read.
 */
export const erasedUses: Migration = {
  name: '0676-erased-uses',
  up: (knex) =>
    knex.raw(`
      create table erased_uses (
        account_id   uuid not null,
        platform     text not null,
        since        timestamptz not null,
        live_chat_id text not null,
        person_key   uuid not null,
        emotes       jsonb not null,
        primary key (account_id, platform, since, live_chat_id, person_key)
      );
      create table erased_shared_messages (
        id         uuid primary key,
        account_id uuid not null
      );
      create index erased_shared_messages_account on erased_shared_messages (account_id);
      create index erased_uses_age on erased_uses (since);
      create index chat_minute_counts_age on chat_minute_counts (since);
      create index counted_events_age on counted_events (created_at)`),
};
