import type { Migration } from './index';

/**
 * Intents of sends, by which their echoes are found: the platform's id of the channel, and keyed hashes of the speaker
 * and of the text. Null for sends of earlier releases.
 */
export const chatSendIntents: Migration = {
  name: '0485-chat-send-intents',
  up: (knex) =>
    knex.raw(`
      alter table chat_sends add column channel_id text, add column speaker_hash text, add column text_hash text;
      create index chat_sends_pace on chat_sends (speaker_hash, channel_id, asked_at)`),
};
