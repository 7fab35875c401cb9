import type { Migration } from './index';

/**
 * Messages that were asked to be sent to a platform's chat, kept before the call: a repetition finds the row, and sends
 * nothing. `speaker_id` is the login or bot connection that speaks; `message_id` the platform's id of the message.
 */
export const chatSends: Migration = {
  name: '0390-chat-sends',
  up: (knex) =>
    knex.raw(`
      create table chat_sends (
        account_id uuid not null,
        id         uuid not null,
        platform   text not null,
        speaker_id uuid not null,
        asked_at   timestamptz not null default clock_timestamp(),
        status     text not null default 'asked' check (status in ('asked', 'sent', 'refused', 'unknown')),
        message_id text,
        primary key (account_id, id)
      );
      create index chat_sends_speaker on chat_sends (speaker_id, asked_at);
      create index chat_sends_asked on chat_sends (asked_at);
      create index chat_sends_message on chat_sends (account_id, message_id) where message_id is not null`),
};
