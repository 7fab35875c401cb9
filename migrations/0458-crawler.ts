import type { Migration } from './index';

/** Read models of the crawler: its scope, watched channels and opt-outs by operators. */
export const crawler: Migration = {
  name: '0458-crawler',
  up: (knex) =>
    knex.raw(`
      create table crawler_scope (
        crawler_id text primary key,
        enabled    boolean not null,
        platforms  text[] not null
      );
      create table crawler_watchlist (
        id       uuid primary key,
        platform text not null,
        channel  text not null,
        added_at timestamptz not null
      );
      create index crawler_watchlist_newest on crawler_watchlist (added_at desc, id);
      create table crawler_opt_outs (
        platform     text not null,
        channel      text not null,
        opted_out_at timestamptz not null,
        primary key (platform, channel)
      )`),
};
