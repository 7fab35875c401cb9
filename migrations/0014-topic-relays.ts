import type { Migration } from './index';

/**
 * Relayed state of a dead letter: the log that stored it, and the letter's state at that time. A letter with another
 * state waits to be relayed. A mark on each row instead of a position in the table, because letters of several
 * projectors commit in another order than their ids, and an old letter changes when it is settled. Design §7.
 */
export const topicRelays: Migration = {
  name: '0014-topic-relays',
  async up(knex) {
    await knex.raw(`
      alter table dead_letters
        add column relayed_to       text,
        add column relayed_status   text,
        add column relayed_attempts integer not null default 0;
      create index dead_letters_unrelayed on dead_letters (id)
        where relayed_status is distinct from status or relayed_attempts <> attempts;
    `);
  },
};
