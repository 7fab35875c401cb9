import { eventUserId } from '../../domain/events/event-users';
import type { Raid } from '../../domain/history/session-figures';
import type { Queryable } from '../../engines/postgres/port';
import { memberAt, parsedJson } from '../../lib/json/paths';

/** Members of a raid's payload that name the raider; the first one counts. */
const NAMES: readonly string[] = [
  'from_broadcaster_user_name',
  'from_broadcaster_user_login',
  'nick_name',
  'user_name',
];

export interface Raider {
  platform_user_id: string | null;
  display_name: string | null;
}

/**
 * Adds the raiders, as their events name them: figures hold no person, so that retention and erasures of events count.
 */
export async function withRaiders(
  db: Queryable,
  account_id: string,
  raids: readonly Raid[],
): Promise<(Raid & Raider)[]> {
  if (raids.length === 0) return [];
  // Ids of versions 5 and 8 are those of events that the account emitted itself.
  const rows = await db.query<{ place: number; platform: string; raw: string }>(
    `select distinct on (r.place) r.place, e.platform, e.raw::text as raw
     from unnest($2::text[], $3::timestamptz[]) with ordinality r (platform, raided_at, place)
       join platform_event_logs e on e.account_id = $1 and e.platform = r.platform
         and e.type = r.platform || ':raid' and e.created_at = r.raided_at
         and get_byte(uuid_send(e.id), 6) >> 4 not in (5, 8)
     order by r.place, e.id`,
    [account_id, raids.map(({ platform }) => platform), raids.map(({ raided_at }) => raided_at)],
    'session-raiders',
  );
  const raiders = new Map(rows.map(({ place, platform, raw }) => [Number(place) - 1, raiderOf(platform, raw)]));
  return raids.map((raid, place) => ({ ...raid, ...(raiders.get(place) ?? UNKNOWN) }));
}

const UNKNOWN: Raider = { platform_user_id: null, display_name: null };

function raiderOf(platform: string, raw: string): Raider {
  const value = parsedJson(raw);
  const names = NAMES.map((name) => memberAt(value, [name]));
  return {
    platform_user_id: eventUserId(platform, raw),
    display_name: names.find((name) => typeof name === 'string' && name !== '') ?? null,
  } as Raider;
}
