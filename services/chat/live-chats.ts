import type { Queryable } from '../../engines/postgres/port';
import { DomainError } from '../../kernel/errors';

/** A broadcast of an account's YouTube channel that is on air, with its chat. */
export interface ActiveStream {
  broadcast_id: string;
  live_chat_id: string;
  title: string | null;
  /** RFC 3339. */
  started_at: string | null;
}

/** Broadcasts of the account's YouTube channel that are on air and have a chat, newest first. */
export function activeStreams(db: Pick<Queryable, 'query'>, account_id: string): Promise<ActiveStream[]> {
  return db.query<ActiveStream & Record<string, unknown>>(
    `select broadcast_id, live_chat_id, stream_title as title, started_at from channel_status
     where account_id = $1 and platform = 'youtube' and is_online and live_chat_id is not null
     order by started_at desc nulls last, broadcast_id`,
    [account_id],
    'youtube-active-streams',
  );
}

/**
 * The live chat of YouTube that an act is for: the given one, when it is active and the account's own, else the only
 * active one.
 * @throws DomainError LIVE_CHAT_UNKNOWN, NO_ACTIVE_STREAM, SEVERAL_ACTIVE_STREAMS
 */
export async function liveChatFor(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  requested: string | null,
): Promise<string> {
  const active = await activeStreams(db, account_id);
  if (requested !== null) {
    if (active.some(({ live_chat_id }) => live_chat_id === requested)) return requested;
    throw new DomainError('LIVE_CHAT_UNKNOWN');
  }
  if (active.length === 0) throw new DomainError('NO_ACTIVE_STREAM');
  if (active.length > 1) throw new DomainError('SEVERAL_ACTIVE_STREAMS');
  return active[0]!.live_chat_id;
}
