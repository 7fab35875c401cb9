import type { Migration } from './index';

/**
 * Work divided by kind (engines/leases/shares.ts): a member names the kinds of its work instead of every piece, and
 * `change` numbers the holds of a kind in the order of their commits, so that a member reads only changes. The previous
 * release continues with `names` and inserts holds without the new columns.
 */
export const workKinds: Migration = {
  name: '0235-work-kinds',
  async up(knex) {
    await knex.raw(`
      create sequence work_changes;
      alter table work_members add column kinds text[] not null default '{}';
      alter table work_holds
        add column kind text not null
          generated always as (case when strpos(name, ':') > 0 then split_part(name, ':', 1) else '' end) stored,
        add column wanted_by uuid,
        add column change bigint not null default nextval('work_changes');
      create index work_holds_change on work_holds (kind, change);
      -- Holds that ended within the last minutes, for members that remember them.
      create table work_freed (
        change   bigint primary key default nextval('work_changes'),
        kind     text not null,
        name     text not null,
        freed_at timestamptz not null default clock_timestamp()
      );
      create index work_freed_change on work_freed (kind, change);
    `);
  },
};
