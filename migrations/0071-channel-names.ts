import type { Migration } from './index';

/**
 * What channels are called, sealed under their persons' keys. No read model, since no event carries it any more. The
 * column of `channel_connections` stays for the build before, and what it holds is taken over at the next start
 * (maintenance/channel-name-adoption.ts): a migration has no keys.
 */
export const channelNames: Migration = {
  name: '0071-channel-names',
  async up(knex) {
    await knex.raw(`
      create table channel_names (
        platform            text not null,
        platform_channel_id text not null,
        key_id              uuid not null,
        sealed              text not null,
        updated_at          timestamptz not null default clock_timestamp(),
        primary key (platform, platform_channel_id)
      );
      alter table channel_connections alter column channel_name drop not null;
    `);
  },
};
