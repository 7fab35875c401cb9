import { type Queryable, textArray } from '../../engines/postgres/port';
import { retry } from '../../lib/async/retry';
import type { LinkedConnection } from '../runtime/connection/adapter';
import { textOf } from '../runtime/webhook/webhook';
import { inferredEnd } from './looks/catch-up';
import { type Known, knownAfter, knownAfterLook, NOTHING_KNOWN } from './looks/known';

/** EventSub's types of the events in the log from which the state of a channel follows, the stream excepted. */
const EVENTSUB_TYPES: ReadonlyMap<string, string> = new Map([
  ['twitch:hype_train', 'channel.hype_train.progress'],
  ['twitch:hype_train_end', 'channel.hype_train.end'],
  ['twitch:poll', 'channel.poll.progress'],
  ['twitch:poll_end', 'channel.poll.end'],
  ['twitch:poll_delete', 'channel.poll.end'],
  ['twitch:prediction', 'channel.prediction.progress'],
  ['twitch:prediction_lock', 'channel.prediction.lock'],
  ['twitch:prediction_end', 'channel.prediction.end'],
]);

/** The broadcast that is on air by the reports and looks so far. */
const ON_AIR = 'stream.online';

interface Row extends Record<string, unknown> {
  type: string;
  id: string | null;
  external_id: string | null;
}

const RETRY = { first_ms: 250, most_ms: 4_000, tries: 4, passing: () => true };

/**
 * Reads the last known state of a channel, for channels whose events other processes received: hype train, poll and
 * prediction from the newest events of the log, and the stream that is on air.
 */
export function createLastKnown(db: Queryable): (connection: LinkedConnection) => Promise<Known> {
  const read = (account_id: string | null) =>
    db.query<Row>(
      `select e.type, e.id, e.external_id, e.created_at
       from unnest($2::text[]) as wanted (type)
         cross join lateral (
           select l.type, l.raw ->> 'id' as id, l.external_id, l.created_at from platform_event_logs l
           where l.account_id = $1 and l.type = wanted.type and l.platform = 'twitch'
             and l.created_at > clock_timestamp() - interval '3 days'
           order by l.created_at desc, l.id desc limit 1) e
       union all
       (select '${ON_AIR}', s.broadcast_id, null, s.updated_at from channel_status s
        where s.account_id = $1 and s.platform = 'twitch' and s.is_online order by s.started_at desc limit 1)
       order by created_at`,
      [account_id, textArray([...EVENTSUB_TYPES.keys()])],
      'twitch-last-known',
    );
  return async ({ account_id }) => {
    const rows = await retry(() => read(account_id), RETRY);
    return rows.reduce(knownAfterRow, NOTHING_KNOWN);
  };
}

function knownAfterRow(known: Known, { type, id, external_id }: Row): Known {
  const [event_type, event] = [EVENTSUB_TYPES.get(type) ?? ON_AIR, { id: textOf(id) }];
  const ends = inferredEnd(external_id);
  return ends === null ? knownAfter(known, event_type, event) : knownAfterLook(known, event_type, event, ends);
}
