import { account, accountStream } from '../../domain/accounts/accounts';
import { ownership, ownershipStream } from '../../domain/accounts/ownerships';
import type { EventStore } from '../../engines/event-store/port';
import type { Queryable } from '../../engines/postgres/port';
import { load } from '../../app/write-path/aggregate-cache';

/**
 * Accounts of the user, verified on the accounts' own streams. `ended`: accounts that were counted as the user's and
 * are not any more.
 */
export async function ownershipsOf(
  { db, events }: { db: Queryable; events: EventStore },
  user_id: string,
): Promise<{ owned: string[]; ended: string[] }> {
  const opened = await load(events, ownership, ownershipStream(user_id));
  const rows = await db.query<{ id: string }>(
    'select id from accounts where owner_id = $1',
    [user_id],
    'accounts-owned',
  );
  const found = { owned: [] as string[], ended: [] as string[] };
  for (const id of new Set([...(opened?.state ?? []), ...rows.map((row) => row.id)])) {
    const known = await load(events, account, accountStream(id));
    const theirs = known !== null && !known.state.dissolved && known.state.owner_id === user_id;
    found[theirs ? 'owned' : 'ended'].push(id);
  }
  return found;
}
