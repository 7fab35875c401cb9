import type { Migration } from './index';

/**
 * Rows that a session's last count has read: messages received before it, and others. Where fewer of them are
 * left, retention or an erasure has taken some, and a later count would lower the figures.
 */
export const sessionRowCounts: Migration = {
  name: '0521-session-row-counts',
  up: (knex) =>
    knex.raw(`
      create table session_row_counts (
        session_id uuid primary key,
        account_id uuid not null,
        counted_ms bigint not null,
        chat_rows  bigint not null,
        other_rows bigint not null
      )`),
};
