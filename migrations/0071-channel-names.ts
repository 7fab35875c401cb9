import type { Migration } from './index';

/**
 * Names of channels, sealed under their persons' keys. Not a read model, because events no longer carry them. The
 * column of `channel_connections` stays for the previous release, and its content is adopted at the next start
 * (maintenance/upgrade/channel-name-adoption.ts), because a migration has no keys.
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
