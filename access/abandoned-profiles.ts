import { user, userStream } from '../domain/users';
import type { Services } from './services';
import { load } from './states';

/** Longer than any call that makes a user takes. */
const ABANDONED_AFTER = "interval '10 minutes'";
const MOST_ABANDONED = 100;

/**
 * Drops profiles that nobody would ever erase: of users that never came to be, since the call that made them was killed
 * before its event, and of deleted ones, written by a call that was on its way when they were erased. Whether there is
 * a user is asked of the events, since read models may be behind. Returns how many there were.
 */
export async function dropAbandonedProfiles({ db, events }: Pick<Services, 'db' | 'events'>): Promise<number> {
  const abandoned = await db.query<{ user_id: string }>(
    `select user_id from profiles p
     where updated_at < clock_timestamp() - ${ABANDONED_AFTER}
       and not exists (select 1 from users u where u.id = p.user_id)
     order by updated_at limit $1`,
    [MOST_ABANDONED],
  );
  let dropped = 0;
  for (const { user_id } of abandoned) {
    const known = await load(events, user, userStream(user_id));
    if (known !== null && !known.state.deleted) continue;
    const gone = await db.query(
      `delete from profiles where user_id = $1 and updated_at < clock_timestamp() - ${ABANDONED_AFTER}
         returning user_id`,
      [user_id],
    );
    dropped += gone.length;
  }
  return dropped;
}
