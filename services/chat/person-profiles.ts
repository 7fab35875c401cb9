import type { Services } from '../../app/services';
import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { OutcomeUnknown, NotSent } from '../../kernel/job';
import { HttpFailed } from '../../vendors/http/port';
import type { ChatLogin, ChatProfile, ChatVendor, Following } from '../../vendors/chat/port';
import { readGrant } from '../connections/connection-grants';
import { ReconnectRequired, TokenAway } from '../connections/connection-tokens';
import { ownChannel } from '../connections/own-channel';
import { tokenOf } from '../connections/vendor-connections';
import { withToken } from '../connections/with-token';
import { COSTS } from '../../vendors/youtube/port';

/** Age from which fetched details are fetched again. Source: spec extra facts §11. */
const STALE = `interval '24 hours'`;
/** Pause after a try without an answer. */
const PAUSE = `interval '30 minutes'`;
/** Source: spec doc1 §8 "Profile refresh cooldown". */
const COOLDOWN_SECONDS = 600;

type ProfileServices = Pick<Services, 'db' | 'texts' | 'chat' | 'connection_tokens' | 'spendYoutube'>;

/** A person on a platform, in an account's chats. */
export interface PersonHere {
  account_id: string;
  platform: Platform;
  platform_user_id: string;
}

/**
 * Fetches details of a person from their platform, with the token of the account's channel. Details that are fresh are
 * fetched only with `anew`. The platform is not asked about a person unknown to the account's chats, and known details
 * stay while it does not answer.
 */
export async function enrich(services: ProfileServices, person: PersonHere, anew: boolean): Promise<void> {
  const { db, chat } = services;
  const { account_id, platform } = person;
  const key = await dueKey(db, person, anew);
  if (key === null) return;
  const channel = await ownChannel(db, account_id, platform);
  if (channel === null || channel.reconnect_required) return;
  const { connection_id, channel_id } = channel;
  const grant = await readGrant(services, connection_id);
  if (grant === null || grant.dead) return;
  if (platform === 'youtube' && !(await services.spendYoutube(grant.client_id, COSTS.list))) return;
  const by = { user_id: grant.platform_user_id, client_id: grant.client_id };
  try {
    const fetched = await withToken(tokenOf(services.connection_tokens, connection_id), (token) =>
      fetchDetails(chat.get(platform)!, { ...by, token }, channel_id, person.platform_user_id),
    );
    await writeDetails(db, account_id, key, fetched);
  } catch (error) {
    const passing = [HttpFailed, NotSent, OutcomeUnknown, TokenAway, ReconnectRequired];
    if (!passing.some((kind) => error instanceof kind)) throw error;
  }
}

/** Key of the person when a fetch is due; the try is stored, so that no other node asks at the same time. */
async function dueKey(db: Pick<Queryable, 'query'>, person: PersonHere, anew: boolean): Promise<string | null> {
  const { account_id, platform, platform_user_id } = person;
  const [row] = await db.query<{ person_key: string }>(
    `insert into platform_user_details as d (account_id, person_key, tried_at)
       select account_id, person_key, clock_timestamp() from platform_users
       where account_id = $1 and platform = $2 and platform_user_id = $3 order by last_seen_at desc limit 1
     on conflict (account_id, person_key) do update set tried_at = excluded.tried_at
       where $4 or (d.tried_at < excluded.tried_at - ${PAUSE}
         and (d.enriched_at is null or d.enriched_at < excluded.tried_at - ${STALE}))
     returning person_key`,
    [account_id, platform, platform_user_id, anew],
    'platform-user-due',
  );
  return row?.person_key ?? null;
}

interface Fetched {
  profile: ChatProfile | null;
  following: Following;
}

async function fetchDetails(vendor: ChatVendor, by: ChatLogin, channel_id: string, user_id: string): Promise<Fetched> {
  const profile = await vendor.profile(by, user_id);
  const following = (await vendor.following?.(by, channel_id, user_id)) ?? null;
  return { profile, following };
}

async function writeDetails(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  person_key: string,
  { profile, following }: Fetched,
): Promise<void> {
  await db.query(
    `update platform_user_details set avatar_url = $3, description = $4, account_created_at = $5,
       broadcaster_type = $6, is_follower = $7, followed_at = $8, enriched_at = clock_timestamp()
     where account_id = $1 and person_key = $2`,
    [
      ...[account_id, person_key, profile?.avatar_url, profile?.description, profile?.account_created_at],
      ...[profile?.broadcaster_type, following?.is_follower, following?.followed_at],
    ],
    'platform-user-details-write',
  );
}

/**
 * Takes the cooldown of a person's refresh; returns the seconds that are left of another one, 0 when it was taken, and
 * for a person whom the chats do not know, for whom nobody is asked.
 */
export async function takeRefresh(
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: PersonHere,
): Promise<number> {
  const [row] = await db.query<{ taken: boolean; seconds: number | null }>(
    `with person as (
       select account_id, person_key from platform_users
       where account_id = $1 and platform = $2 and platform_user_id = $3 order by last_seen_at desc limit 1
     ), taken as (
       insert into platform_user_refreshes as r (account_id, person_key, refreshed_at)
         select account_id, person_key, clock_timestamp() from person
       on conflict (account_id, person_key) do update set refreshed_at = excluded.refreshed_at
         where r.refreshed_at <= excluded.refreshed_at - make_interval(secs => ${COOLDOWN_SECONDS}) returning 1
     )
     select exists (select from taken) as taken,
       ceil(${COOLDOWN_SECONDS} - extract(epoch from clock_timestamp() - r.refreshed_at))::int as seconds
     from person left join platform_user_refreshes r using (account_id, person_key)`,
    [account_id, platform, platform_user_id],
    'platform-user-refresh',
  );
  if (row === undefined || row.taken) return 0;
  return Math.min(Math.max(row.seconds ?? COOLDOWN_SECONDS, 1), COOLDOWN_SECONDS);
}

/** Deletes cooldowns that are over. Returns their number. */
export async function sweepRefreshes(db: Pick<Queryable, 'query'>): Promise<number> {
  const over = `refreshed_at < now() - make_interval(secs => ${COOLDOWN_SECONDS})`;
  return (await db.query(`delete from platform_user_refreshes where ${over} returning 1 as one`)).length;
}
