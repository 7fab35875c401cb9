import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { PUBLIC_STATS_EVENTS } from '../../domain/history/public-stats';
import { STREAM_SESSION_EVENTS } from '../../domain/history/stream-sessions';
import { type Sql, sql } from '../../kernel/sql';
import { each, eventProjection, pick } from '../runtime/drive/handlers';

const STREAMS = sql`jsonb_to_recordset(e.figures -> 'streams') as s (platform text, platform_channel_id text,
  broadcast_id text, title text, category text, started_at timestamptz, ended_at timestamptz, duration_secs bigint,
  peak_viewers bigint, avg_viewers double precision, total_messages bigint, follower_markers jsonb, categories jsonb,
  top_emotes jsonb)`;
const FIGURES = sql`jsonb_array_elements(e.figures -> 'streams') with ordinality as of_session (x, place)`;

/** Sets the sums of channels from their streams; of a stream that two accounts have counted one counts. */
const sumsOf = (channels: Sql, streams: Sql): readonly Sql[] => [
  sql`delete from public_channel_stats c using (${channels}) a
      where c.platform = a.platform and c.platform_channel_id = a.platform_channel_id`,
  sql`insert into public_channel_stats (platform, platform_channel_id, stream_count, total_duration_secs, peak_viewers,
        avg_viewers, total_messages, last_streamed_at)
      select platform, platform_channel_id, count(*), sum(duration_secs), max(peak_viewers),
        sum(avg_viewers * duration_secs) / nullif(sum(duration_secs) filter (where avg_viewers is not null), 0),
        sum(total_messages), max(ended_at)
      from (select distinct on (t.platform, t.platform_channel_id, t.broadcast_id) t.* from public_streams t
            join (select distinct * from (${channels}) c) a using (platform, platform_channel_id)
            where ${streams} order by t.platform, t.platform_channel_id, t.broadcast_id, t.account_id) one
      group by platform, platform_channel_id`,
];

const OF_SESSION = sql`t.session_id = e.session_id and t.account_id = e.account_id`;
const OF_FIGURES = sql`select s.platform, s.platform_channel_id from e, ${STREAMS}`;
/** Events are applied singly: the sums of a channel follow from rows of several sessions. */
const ONE: readonly string[] = [];
const FINISHED = each(
  ONE,
  sql`insert into public_streams (account_id, platform, broadcast_id, platform_channel_id, session_id, started_at,
        ended_at, duration_secs, peak_viewers, avg_viewers, total_messages, follower_count, title, category, figures)
      select distinct on (e.account_id, x ->> 'platform', x ->> 'broadcast_id') e.account_id, x ->> 'platform', x ->> 'broadcast_id', x ->> 'platform_channel_id', e.session_id,
        (x ->> 'started_at')::timestamptz, coalesce((x ->> 'ended_at')::timestamptz, e.ended_at),
        (x ->> 'duration_secs')::bigint, (x ->> 'peak_viewers')::bigint, (x ->> 'avg_viewers')::double precision,
        (x ->> 'total_messages')::bigint, (x #>> '{follower_markers,last}')::bigint, x ->> 'title', x ->> 'category', x
      from e, ${FIGURES}
      order by e.account_id, x ->> 'platform', x ->> 'broadcast_id', place desc
      on conflict (platform, broadcast_id, account_id) do update set session_id = excluded.session_id,
        ended_at = excluded.ended_at, duration_secs = excluded.duration_secs, peak_viewers = excluded.peak_viewers,
        avg_viewers = excluded.avg_viewers, total_messages = excluded.total_messages,
        follower_count = excluded.follower_count, title = excluded.title, category = excluded.category,
        figures = excluded.figures`,
  sql`delete from public_stream_categories t using e where ${OF_SESSION}`,
  sql`insert into public_stream_categories
      select s.platform, s.broadcast_id, e.account_id, s.platform_channel_id, e.session_id, s.started_at, c.category,
        c.duration_secs, c.avg_viewers
      from e, ${STREAMS}, jsonb_to_recordset(s.categories) as c (category text, duration_secs bigint,
        avg_viewers double precision)
      on conflict do nothing`,
  sql`delete from public_stream_emotes t using e where ${OF_SESSION}`,
  sql`insert into public_stream_emotes
      select s.platform, s.broadcast_id, e.account_id, s.platform_channel_id, e.session_id, s.started_at, m.provider,
        m.id, m.name, m.url, m.count
      from e, ${STREAMS}, jsonb_to_recordset(s.top_emotes) as m (provider text, id text, name text, url text,
        count bigint)
      on conflict do nothing`,
  ...sumsOf(OF_FIGURES, sql`true`),
);

const without = (of: Sql, streams: Sql): readonly Sql[] => [
  ...sumsOf(
    sql`select t.platform, t.platform_channel_id from public_streams t join e on ${of}`,
    sql`not exists (select from e where ${of})`,
  ),
  sql`delete from public_streams t using e where ${streams}`,
  sql`delete from public_stream_categories t using e where ${streams}`,
  sql`delete from public_stream_emotes t using e where ${streams}`,
];
const OF_YOUNGER = sql`t.session_id = e.younger_id and t.account_id = e.account_id`;
const OF_ACCOUNT = sql`t.account_id = e.account_id`;

const setPublicness = (is_public: Sql, via: Sql) => sql`
  insert into public_channels (account_id, platform, platform_channel_id, is_public, show_top_chatters, opted_out_via,
    updated_at)
  select account_id, platform, platform_channel_id, ${is_public}, show_top_chatters, ${via}, changed_at from e
  on conflict (account_id, platform, platform_channel_id) do update set is_public = excluded.is_public,
    show_top_chatters = excluded.show_top_chatters, opted_out_via = excluded.opted_out_via,
    updated_at = excluded.updated_at`;

/** Finished streams as everybody may see them, their channels' sums, and which channels are public. */
export const publicStats = eventProjection({
  name: 'public-stats',
  version: 2,
  tables: [
    'public_channels',
    'public_streams',
    'public_stream_categories',
    'public_stream_emotes',
    'public_channel_stats',
  ],
  events: [
    PUBLIC_STATS_EVENTS,
    pick(
      STREAM_SESSION_EVENTS,
      'stream_session:finalized',
      'stream_session:corrected',
      'stream_session:merged',
      'stream_session:deleted',
    ),
    pick(ACCOUNT_EVENTS, 'account:dissolved'),
  ],
  on: {
    'public_stats:channel_opted_out': setPublicness(sql`false`, sql`opted_out_via`),
    'public_stats:channel_opted_in': setPublicness(sql`true`, sql`null`),
    'public_stats:channel_changed': sql`
      insert into public_channels (account_id, platform, platform_channel_id, is_public, show_top_chatters, updated_at)
      select account_id, platform, platform_channel_id, true, show_top_chatters, changed_at from e
      on conflict (account_id, platform, platform_channel_id) do update set
        show_top_chatters = excluded.show_top_chatters, updated_at = excluded.updated_at`,
    'stream_session:finalized': FINISHED,
    'stream_session:corrected': FINISHED,
    // The correction of the older session has the streams again.
    'stream_session:merged': each(ONE, ...without(OF_YOUNGER, OF_YOUNGER)),
    'stream_session:deleted': each(ONE, ...without(OF_SESSION, OF_SESSION)),
    'account:dissolved': each(
      ONE,
      ...without(OF_ACCOUNT, OF_ACCOUNT),
      sql`delete from public_channels t using e where ${OF_ACCOUNT}`,
    ),
  },
});
