import { CRAWLER_EVENTS } from '../../domain/history/crawler';
import { sql } from '../../kernel/sql';
import { all, eventProjection, lastPer } from '../runtime/drive/handlers';

/** Scope, watchlist and opt-outs of the crawler. */
export const crawler = eventProjection({
  name: 'crawler',
  version: 1,
  tables: ['crawler_scope', 'crawler_watchlist', 'crawler_opt_outs'],
  events: [CRAWLER_EVENTS],
  on: {
    'crawler:scope_changed': lastPer(
      ['crawler_id'],
      sql`
      insert into crawler_scope (crawler_id, enabled, platforms) select crawler_id, enabled, platforms from e
      on conflict (crawler_id) do update set enabled = excluded.enabled, platforms = excluded.platforms`,
    ),
    'crawler:channel_watched': all(sql`
      insert into crawler_watchlist (id, platform, channel, added_at)
      select entry_id, platform, channel, changed_at from e on conflict (id) do nothing`),
    'crawler:channel_unwatched': all(sql`delete from crawler_watchlist w using e where w.id = e.entry_id`),
    'crawler:channel_opted_out': lastPer(
      ['platform', 'channel'],
      sql`
      insert into crawler_opt_outs (platform, channel, opted_out_at) select platform, channel, changed_at from e
      on conflict (platform, channel) do update set opted_out_at = excluded.opted_out_at`,
    ),
    'crawler:channel_opted_in': all(sql`
      delete from crawler_opt_outs o using e where o.platform = e.platform and o.channel = e.channel`),
  },
});
