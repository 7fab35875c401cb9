import { user, userStream } from '../../domain/identity/users';
import type { Services } from '../../app/services';
import { load } from '../../app/write-path/aggregate-cache';

/** Longer than any call that makes a user takes. */
const ABANDONED_AFTER = "interval '10 minutes'";
const MAX_ABANDONED = 100;

/**
 * Deletes profiles that no erasure would reach: of users that were never created, because the call was killed before
 * its event, and of deleted users, written by a concurrent call after the erasure. Checks the event store for the user,
 * since read models may be behind. Returns the number deleted.
 */
export async function dropAbandonedProfiles({ db, events }: Pick<Services, 'db' | 'events'>): Promise<number> {
  const abandoned = await db.query<{ user_id: string }>(
    `select user_id from profiles p
     where updated_at < clock_timestamp() - ${ABANDONED_AFTER}
       and not exists (select 1 from users u where u.id = p.user_id)
     order by updated_at limit $1`,
    [MAX_ABANDONED],
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
