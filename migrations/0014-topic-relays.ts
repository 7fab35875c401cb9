import type { Migration } from './index';

/**
 * What of a dead letter is in its topic already: the log that took it, and the state that it had then. A letter whose
 * state is another one waits to be relayed. A mark on each row, and not a position in the table: letters of several
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
