import type { Migration } from './index';

/**
 * Chat history (spec extra facts §11), written only by the projection `chat-live`. `place` is the order in which an
 * account's records were applied: the receipt in microseconds since 1970, raised where it would not follow the place
 * before. `person_key` is the id of the key that seals a person's records. No row is changed by a deletion or a ban:
 * `moderation_log` is asked for them when messages are read.
 */
export const chatHistory: Migration = {
  name: '0380-chat-history',
  up: (knex) =>
    knex.raw(`
      create table platform_chat_messages (
        account_id   uuid not null,
        platform     text not null,
        place        bigint not null,
        id           uuid not null,
        created_at   timestamptz not null,
        person_key   uuid,
        message_id   text,
        live_chat_id text,
        message      text not null,
        content      json,
        is_first     boolean not null,
        is_paid      boolean not null,
        has_link     boolean not null,
        has_emote    boolean not null,
        is_late      boolean not null,
        primary key (account_id, platform, place)
      );
      create unique index platform_chat_messages_ids on platform_chat_messages (id);
      create index platform_chat_messages_person on platform_chat_messages (account_id, person_key, place)
        where person_key is not null;
      create index platform_chat_messages_message on platform_chat_messages (account_id, message_id)
        where message_id is not null;
      create index platform_chat_messages_paid on platform_chat_messages (account_id, platform, place) where is_paid;
      create index platform_chat_messages_late on platform_chat_messages (account_id, platform, place) where is_late;
      create index platform_chat_messages_live_chat on platform_chat_messages (account_id, live_chat_id, place)
        where live_chat_id is not null;

      create table moderation_log (
        account_id   uuid not null,
        place        bigint not null,
        id           uuid not null,
        created_at   timestamptz not null,
        platform     text not null,
        action       text not null,
        person_key   uuid,
        message_id   text,
        effect       text,
        is_listed    boolean not null,
        twin_of      uuid,
        content      json not null,
        primary key (account_id, place)
      );
      create unique index moderation_log_ids on moderation_log (id);
      create index moderation_log_person on moderation_log (account_id, person_key, created_at)
        where person_key is not null;
      create index moderation_log_message on moderation_log (account_id, message_id) where message_id is not null;
      create index moderation_log_twins on moderation_log (twin_of) where twin_of is not null;

      create table platform_users (
        account_id       uuid not null,
        person_key       uuid not null,
        platform         text not null,
        platform_user_id text,
        username         text,
        display_name     text,
        avatar_url       text,
        roles            text[] not null,
        first_seen_at    timestamptz not null,
        last_seen_at     timestamptz not null,
        message_count    bigint not null,
        own_messages     bigint not null,
        primary key (account_id, person_key)
      ) with (fillfactor = 80);
      create index platform_users_ids on platform_users (account_id, platform, platform_user_id)
        where platform_user_id is not null;

      create table chat_message_counts (
        account_id uuid not null,
        platform   text not null,
        day        date not null,
        count      bigint not null,
        primary key (account_id, platform, day)
      ) with (fillfactor = 80);

      create table chat_heads (
        account_id uuid not null primary key,
        place      bigint not null
      ) with (fillfactor = 50)`),
};
