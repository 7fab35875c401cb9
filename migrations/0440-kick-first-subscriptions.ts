import type { Migration } from './index';

/** Subscription at Kick that delivers a type of a channel whose own subscriptions are not known. */
export const kickFirstSubscriptions: Migration = {
  name: '0440-kick-first-subscriptions',
  up: (knex) =>
    knex.raw(`
      create table kick_first_subscriptions (
        channel_id      text not null,
        type            text not null,
        subscription_id text not null,
        seen_at         timestamptz not null,
        primary key (channel_id, type)
      )`),
};
