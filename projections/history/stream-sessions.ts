import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { historyChannel } from '../../domain/history/history-channel';
import { countedSummary, type SessionSummary, summaryOf } from '../../domain/history/session-summary';
import { STREAM_SESSION_EVENTS } from '../../domain/history/stream-sessions';
import { type Sql, sql } from '../../kernel/sql';
import { shownInstant } from '../../lib/time/instants';
import { all, each, eventProjection, pick } from '../runtime/drive/handlers';
import type { ChannelMessage } from '../../kernel/projection';

const STREAM = sql`jsonb_to_record(e.stream) as s (platform text, platform_channel_id text, broadcast_id text,
  title text, category text, started_at timestamptz)`;
const ADD_STREAM = sql`
  insert into session_streams
    (session_id, account_id, platform, platform_channel_id, broadcast_id, title, category, started_at)
  select e.session_id, e.account_id, s.* from e, ${STREAM} on conflict do nothing`;
const setFigures = (counted_at: Sql) => sql`
  update stream_sessions t set is_live = false, ended_at = e.ended_at, title = f.title, titles = f.titles,
    categories = f.categories, duration_secs = f.duration_secs, peak_viewers = f.peak_viewers,
    avg_viewers = f.avg_viewers, total_messages = f.total_messages, unique_chatters = f.unique_chatters,
    new_followers = f.new_followers, figures = e.figures,
    counted_at = ${counted_at}
  from e, jsonb_to_record(e.figures) as f (title text, titles text[], categories text[], duration_secs bigint,
    peak_viewers bigint, avg_viewers double precision, total_messages bigint, unique_chatters bigint,
    new_followers bigint)
  where t.id = e.session_id`;

/** Sessions, their broadcasts and their shared links. A deleted session leaves no row. Source: spec doc2 §2.14. */
export const streamSessions = eventProjection({
  name: 'stream-sessions',
  version: 4,
  tables: ['stream_sessions', 'session_streams', 'session_links', 'merged_sessions'],
  events: [STREAM_SESSION_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'stream_session:begun': all(
      sql`
        insert into stream_sessions (id, account_id, is_live, title, titles, platforms, categories, started_at)
        select e.session_id, e.account_id, true, s.title, array_remove(array[s.title], null), array[s.platform],
          array_remove(array[s.category], null), s.started_at
        from e, ${STREAM} on conflict (id) do nothing`,
      ADD_STREAM,
    ),
    'stream_session:stream_added': sql`
      with s as (select e.session_id, e.account_id, s.* from e, ${STREAM}),
      added as (
        insert into session_streams
          (session_id, account_id, platform, platform_channel_id, broadcast_id, title, category, started_at)
        select * from s on conflict do nothing
      )
      update stream_sessions t set is_live = true, started_at = least(t.started_at, s.started_at),
        platforms = case when s.platform = any(t.platforms) then t.platforms else t.platforms || s.platform end,
        titles = case when s.title is null or s.title = any(t.titles) then t.titles else t.titles || s.title end,
        categories = case when s.category is null or s.category = any(t.categories) then t.categories
          else t.categories || s.category end
      from s where t.id = s.session_id`,
    'stream_session:finalized': setFigures(sql`e.finalized_at`),
    'stream_session:corrected': setFigures(sql`e.corrected_at`),
    // The event stands in both streams; its effect is the same twice. Applied singly: merges may follow each other.
    'stream_session:merged': each(
      [],
      sql`insert into merged_sessions (session_id, account_id, into_id)
          select younger_id, account_id, older_id from e on conflict (session_id) do nothing`,
      sql`update merged_sessions t set into_id = e.older_id from e where t.into_id = e.younger_id`,
      sql`update session_links t set session_id = e.older_id from e where t.session_id = e.younger_id`,
      sql`delete from stream_sessions t using e where t.id = e.younger_id`,
      sql`delete from session_streams t using e where t.session_id = e.younger_id`,
    ),
    'stream_session:deleted': all(
      sql`delete from merged_sessions t using e where t.into_id = e.session_id`,
      sql`delete from stream_sessions t using e where t.id = e.session_id`,
      sql`delete from session_streams t using e where t.session_id = e.session_id`,
      sql`delete from session_links t using e where t.session_id = e.session_id`,
    ),
    'stream_session:link_created': all(sql`
      insert into session_links
        (id, session_id, account_id, token_hash, password_hash, allow_export, created_by, created_at, expires_at)
      select link_id, session_id, account_id, token_hash, password_hash, allow_export, created_by, created_at,
        expires_at from e on conflict (id) do nothing`),
    'stream_session:link_extended': sql`
      update session_links t set expires_at = e.expires_at from e where t.id = e.link_id`,
    'stream_session:link_revoked': all(sql`
      update session_links t set revoked_at = e.revoked_at from e where t.id = e.link_id`),
    'account:dissolved': all(
      sql`delete from merged_sessions t using e where t.account_id = e.account_id`,
      sql`delete from stream_sessions t using e where t.account_id = e.account_id`,
      sql`delete from session_streams t using e where t.account_id = e.account_id`,
      sql`delete from session_links t using e where t.account_id = e.account_id`,
    ),
  },
  messages: {
    'stream_session:begun': ({ account_id, session_id, stream }) => [
      message(
        account_id,
        'history:session_started',
        summaryOf({
          ...{ id: session_id, is_live: true, title: stream.title, platforms: [stream.platform] },
          ...{ categories: stream.category === null ? [] : [stream.category], ended_at: null, figures: null },
          started_at: shownInstant(stream.started_at),
        }),
      ),
    ],
    'stream_session:finalized': ({ account_id, session_id, ended_at, figures }) => [
      message(account_id, 'history:session_updated', countedSummary(session_id, figures, shownInstant(ended_at))),
    ],
  },
});

const message = (account_id: string, event_type: string, item: SessionSummary): ChannelMessage => ({
  channel: historyChannel(account_id),
  event_type,
  data: JSON.stringify({ session_id: item.id, ...item }),
});
