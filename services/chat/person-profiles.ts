import type { Services } from '../../app/services';
import type { Platform } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { OutcomeUnknown, NotSent } from '../../kernel/job';
import { HttpFailed } from '../../vendors/http/port';
import type { ChatLogin, ChatProfile, ChatVendor, Following } from '../../vendors/chat/port';
import { readGrant } from '../connections/connection-grants';
import { ReconnectRequired, TokenUnavailable } from '../connections/connection-tokens';
import { ownChannel } from '../connections/own-channel';
import { tokenOf } from '../connections/vendor-connections';
import { withToken } from '../connections/with-token';
import { COSTS } from '../../vendors/youtube/port';
import { OPEN_MS, PlatformPaused } from './profile-breakers';

/** Age from which pictures, follows and subscriptions are fetched again. Source: spec extra facts §11. */
const STALE = `interval '24 hours'`;
/** Age from which the rest is fetched again. */
const DETAILS_STALE = `interval '14 days'`;
/** Time until the next look-up after an answer. */
const FRESH_SECONDS = 4 * 3_600;
/** Time until the next look-up without credentials, and after a failure. */
const PAUSE = `interval '30 minutes'`;
/** Source: spec doc1 §8 "Profile refresh cooldown". */
const COOLDOWN_SECONDS = 600;

type ProfileServices = Pick<
  Services,
  'db' | 'texts' | 'chat' | 'connection_tokens' | 'spendYoutube' | 'profile_breakers'
>;

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
  const { db, chat, profile_breakers } = services;
  const { account_id, platform } = person;
  const due = await dueLookUp(db, person, anew);
  if (due === null) return;
  const { person_key, whole } = due;
  const channel = await ownChannel(db, account_id, platform);
  if (channel === null || channel.reconnect_required) return;
  const { connection_id, channel_id } = channel;
  const grant = await readGrant(services, connection_id);
  if (grant === null || grant.dead) return;
  if (platform === 'youtube' && !(await services.spendYoutube(grant.client_id, COSTS.list))) return;
  const by = { user_id: grant.platform_user_id, client_id: grant.client_id };
  try {
    const fetched = await profile_breakers.run(account_id, platform, () =>
      withToken(tokenOf(services.connection_tokens, connection_id), (token) =>
        fetchDetails(chat.get(platform)!, { ...by, token }, channel_id, person.platform_user_id, whole),
      ),
    );
    await writeDetails(db, account_id, person_key, fetched);
  } catch (error) {
    if (error instanceof PlatformPaused) return pauseLookUps(db, account_id, person_key);
    const passing = [HttpFailed, NotSent, OutcomeUnknown, TokenUnavailable, ReconnectRequired];
    if (!passing.some((kind) => error instanceof kind)) throw error;
  }
}

interface Due extends Record<string, unknown> {
  person_key: string;
  /** Whether all details are to be fetched, or pictures, follows and subscriptions alone. */
  whole: boolean;
}

/**
 * The person when a look-up is due. The next one is put off at once, as for a failure: no other node calls meanwhile.
 */
async function dueLookUp(db: Pick<Queryable, 'query'>, person: PersonHere, anew: boolean): Promise<Due | null> {
  const { account_id, platform, platform_user_id } = person;
  const [row] = await db.query<Due>(
    `insert into platform_user_details as d (account_id, person_key, tried_at, fetch_after)
       select account_id, person_key, clock_timestamp(), clock_timestamp() + ${PAUSE} from platform_users
       where account_id = $1 and platform = $2 and platform_user_id = $3 order by last_seen_at desc limit 1
     on conflict (account_id, person_key) do update
       set tried_at = excluded.tried_at, fetch_after = excluded.fetch_after
       where $4 or (coalesce(d.fetch_after, d.tried_at + ${PAUSE}) < excluded.tried_at
         and (d.enriched_at is null or d.enriched_at < excluded.tried_at - ${STALE}))
     returning person_key, $4 or details_at is null or details_at < tried_at - ${DETAILS_STALE} as whole`,
    [account_id, platform, platform_user_id, anew],
    'platform-user-due',
  );
  return row ?? null;
}

interface Fetched {
  profile: ChatProfile | null;
  following: Following;
  is_subscriber: boolean | null;
  whole: boolean;
}

async function fetchDetails(
  vendor: ChatVendor,
  by: ChatLogin,
  channel_id: string,
  user_id: string,
  whole: boolean,
): Promise<Fetched> {
  const profile = await vendor.profile(by, user_id, whole);
  const following = (await vendor.following?.(by, channel_id, user_id)) ?? null;
  const is_subscriber = (await vendor.subscribing?.(by, channel_id, user_id)) ?? null;
  return { profile, following, is_subscriber, whole: whole || profile?.details !== undefined };
}

async function writeDetails(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  person_key: string,
  { profile, following, is_subscriber, whole }: Fetched,
): Promise<void> {
  const { details } = profile ?? {};
  await db.query(
    `update platform_user_details set avatar_url = $3, is_follower = $4, followed_at = $5, is_subscriber = $6,
       enriched_at = clock_timestamp(), fetch_after = clock_timestamp() + make_interval(secs => ${FRESH_SECONDS}),
       description = case when $7 then $8 else description end,
       account_created_at = case when $7 then $9 else account_created_at end,
       broadcaster_type = case when $7 then $10 else broadcaster_type end,
       details_at = case when $7 then clock_timestamp() else details_at end
     where account_id = $1 and person_key = $2`,
    [
      ...[account_id, person_key, profile?.avatar_url, following?.is_follower, following?.followed_at],
      ...[is_subscriber, whole, details?.description, details?.account_created_at, details?.broadcaster_type],
    ],
    'platform-user-details-write',
  );
}

/** Puts look-ups of a person off for as long as a breaker stays open. */
async function pauseLookUps(db: Pick<Queryable, 'query'>, account_id: string, person_key: string): Promise<void> {
  await db.query(
    `update platform_user_details set fetch_after = clock_timestamp() + make_interval(secs => ${OPEN_MS / 1000})
     where account_id = $1 and person_key = $2`,
    [account_id, person_key],
    'platform-user-pause',
  );
}

/** Takes the cooldown of a person's refresh; returns the seconds that are left of another one, 0 when it was taken. */
export async function takeRefresh(services: Pick<Services, 'db' | 'hashes'>, person: PersonHere): Promise<number> {
  const { account_id, platform, platform_user_id } = person;
  const subject = `${platform}:${platform_user_id}`;
  const person_hash = (await services.hashes.hashesOf([subject])).get(subject)!;
  const [row] = await services.db.query<{ taken: boolean; seconds: number | null }>(
    `with person as (
       select account_id, person_key from platform_users
       where account_id = $1 and platform = $2 and platform_user_id = $3 order by last_seen_at desc limit 1
     ), unknown as (
       insert into unknown_user_refreshes as r (account_id, person_hash, refreshed_at)
         select $1::uuid, $4, clock_timestamp() where not exists (select from person)
       on conflict (account_id, person_hash) do update set refreshed_at = excluded.refreshed_at
         where ${isOver('r')} returning 1
     ), before as (
       -- A person who wrote since their refresh as an unknown one.
       select refreshed_at from unknown_user_refreshes r
       where account_id = $1 and person_hash = $4 and not (${isOver('r', 'clock_timestamp()')})
     ), known as (
       insert into platform_user_refreshes as r (account_id, person_key, refreshed_at)
         select account_id, person_key, clock_timestamp() from person where not exists (select from before)
       on conflict (account_id, person_key) do update set refreshed_at = excluded.refreshed_at
         where ${isOver('r')} returning 1
     )
     select exists (select from unknown union all select from known) as taken,
       ceil(${COOLDOWN_SECONDS} - extract(epoch from clock_timestamp() - greatest(
         (select refreshed_at from before),
         (select r.refreshed_at from person join platform_user_refreshes r using (account_id, person_key))
       )))::int as seconds`,
    [account_id, platform, platform_user_id, person_hash],
    'platform-user-refresh',
  );
  if (row!.taken) return 0;
  return Math.min(Math.max(row!.seconds ?? COOLDOWN_SECONDS, 1), COOLDOWN_SECONDS);
}

/** Condition that a cooldown is over at a time. */
function isOver(row: string, at = 'excluded.refreshed_at'): string {
  return `${row}.refreshed_at <= ${at} - make_interval(secs => ${COOLDOWN_SECONDS})`;
}

/** Deletes cooldowns that are over. Returns their number. */
export async function sweepRefreshes(db: Pick<Queryable, 'query'>): Promise<number> {
  let swept = 0;
  for (const table of ['platform_user_refreshes', 'unknown_user_refreshes'])
    swept += (await db.query(`delete from ${table} r where ${isOver('r', 'now()')} returning 1 as one`)).length;
  return swept;
}
