import type { Queryable } from '../../../engines/postgres/port';
import type { Conduit } from '../../../vendors/twitch/port';
import type { NamedSubscription } from './condition';
import { CONDUIT_WORKERS } from './offer';

/** A time in which no shard of a conduit was connected; Unix milliseconds, `from` null when unknown. */
export interface ConduitGap {
  /** Number of the gap in its conduit. */
  number: number;
  from: number | null;
  to: number;
}

/** The conduit of an app, as stored. */
export interface KeptConduit extends Conduit {
  client_id: string;
  /** Whether a shard was ever connected: no socket receives earlier subscriptions. */
  receives: boolean;
  /** Whether no worker opens its shards, while one receives channels over sockets alone. */
  is_paused: boolean;
  /** Last time Twitch listed it; Unix milliseconds. */
  checked_at: number | null;
  /** Number of that check, and the session of each shard connected then. */
  checks: number;
  sessions: Readonly<Record<string, string>>;
  /** Last gap; number 0 without one. */
  gap: ConduitGap;
}

/** A subscription of a channel over the conduit. */
export interface KeptSubscription {
  channel_id: string;
  name: string;
  /** Null when Twitch refused it, or it has ended. */
  subscription_id: string | null;
  /** Begin of its reception, by Twitch's clock (RFC 3339). */
  since: string | null;
  /** Twitch's reason; null when it was not refused. */
  refused: string | null;
  /** The owner's login for which it was refused ({@link LinkedConnection.since}). */
  consent: string | null;
}

/** New state of one subscription. */
export type SubscriptionChange = Omit<KeptSubscription, 'channel_id'>;

export interface ListedSubscription extends KeptSubscription {
  /** True after a request whose answer is unknown: the subscription may exist. */
  asked: boolean;
}

interface ConduitRow extends Record<string, unknown> {
  client_id: string;
  conduit_id: string | null;
  shard_count: number;
  others: string[];
  receives: boolean;
  is_paused: boolean;
  checked_at: string | null;
  checks: number;
  sessions: Record<string, string>;
  gaps: number;
  gap_from: string | null;
  gap_to: string | null;
}

/** First part of the names of shards' links: a separate kind of work, spread evenly over the workers. */
export const SHARD_KIND = 'twitch-conduit';
const SUBSCRIPTION = 'channel_id, name, subscription_id, since, refused, consent';

/** Conduits and their subscriptions, in the tables `twitch_conduits` and `twitch_conduit_subscriptions`. */
export class ConduitStore {
  constructor(private readonly db: Queryable) {}

  async conduit(client_id: string): Promise<KeptConduit | null> {
    const row = await this.row(client_id);
    if (row === undefined || row.conduit_id === null) return null;
    const { shard_count, receives, is_paused, checks, sessions, gaps: number, gap_from, gap_to } = row;
    return {
      ...{ client_id, id: row.conduit_id, shard_count, receives, is_paused, checks, sessions },
      checked_at: msOf(row.checked_at),
      gap: { number, from: msOf(gap_from), to: msOf(gap_to) ?? 0 },
    };
  }

  /** The app's other conduits at the time of an unfinished request for one; null without such a request. */
  async beingMade(client_id: string): Promise<ReadonlySet<string> | null> {
    const row = await this.row(client_id);
    return row === undefined || row.conduit_id !== null ? null : new Set(row.others);
  }

  /**
   * Call before requesting a conduit from Twitch, so that a successor finds the new one. False when another process has
   * replaced `lost` meanwhile.
   */
  async beginMaking(client_id: string, lost: string | null, others: readonly string[]): Promise<boolean> {
    const rows = await this.db.query(
      `insert into twitch_conduits as c (client_id, shard_count, others) values ($1, 0, $3)
       on conflict (client_id) do update set conduit_id = null, others = excluded.others, receives_from = null,
         paused_at = null, checked_at = null, sessions = '{}'
         where c.conduit_id is not distinct from $2
       returning 1 as one`,
      [client_id, lost, [...others]],
      'twitch-conduit-begin',
    );
    return rows.length > 0;
  }

  /** Stores the new conduit. False when another process was first: the conduit is superfluous. */
  async made(client_id: string, { id, shard_count }: Conduit): Promise<boolean> {
    const rows = await this.db.query(
      `update twitch_conduits set conduit_id = $2, shard_count = $3, checked_at = clock_timestamp()
       where client_id = $1 and conduit_id is null returning 1 as one`,
      [client_id, id, shard_count],
      'twitch-conduit-made',
    );
    return rows.length > 0;
  }

  /** Notes that no worker opens the conduit's shards; returns the time since the first note, in milliseconds. */
  async pause(conduit_id: string): Promise<number> {
    const [row] = await this.db.query<{ paused_ms: number }>(
      `update twitch_conduits set paused_at = coalesce(paused_at, clock_timestamp()), receives_from = null
       where conduit_id = $1
       returning (extract(epoch from clock_timestamp() - paused_at) * 1000)::float8 as paused_ms`,
      [conduit_id],
      'twitch-conduit-pause',
    );
    return row?.paused_ms ?? 0;
  }

  async resume(conduit_id: string): Promise<void> {
    await this.db.query(
      'update twitch_conduits set paused_at = null where conduit_id = $1',
      [conduit_id],
      'twitch-conduit-resume',
    );
  }

  /** Deletes the conduit without a replacement. */
  async abandon(conduit_id: string): Promise<void> {
    await this.db.query('delete from twitch_conduits where conduit_id = $1', [conduit_id], 'twitch-conduit-abandon');
    await this.forgetAll(conduit_id);
  }

  /**
   * Whether an active worker receives Twitch channels over sockets alone: by its settings, or of an earlier release.
   */
  async hasSocketWorkers(): Promise<boolean> {
    const rows = await this.db.query(
      // A member of the release without kinds lists its names.
      `select 1 as one from work_members
       where renewed_at > clock_timestamp() - interval '10 s' and not $1 = any (kinds)
         and ('twitch' = any (kinds) or exists (select from unnest(names) name where name like 'twitch:%'))
       limit 1`,
      [CONDUIT_WORKERS],
      'twitch-conduit-socket-workers',
    );
    return rows.length > 0;
  }

  /** Stores a check: Twitch listed the conduit just now, with these sessions of its shards. */
  async checked(conduit: Conduit, sessions: Readonly<Record<string, string>>, began_at: number): Promise<void> {
    await this.db.query(
      `update twitch_conduits set shard_count = $2, sessions = $3, checks = checks + 1,
         checked_at = clock_timestamp() - make_interval(secs => $4)
       where conduit_id = $1`,
      [conduit.id, conduit.shard_count, JSON.stringify(sessions), (performance.now() - began_at) / 1000],
      'twitch-conduit-checked',
    );
  }

  /** Notes that a shard is connected. True for the first one of the conduit. */
  async receives(conduit_id: string): Promise<boolean> {
    const rows = await this.db.query(
      `update twitch_conduits set receives_from = clock_timestamp()
       where conduit_id = $1 and receives_from is null returning 1 as one`,
      [conduit_id],
      'twitch-conduit-receives',
    );
    return rows.length > 0;
  }

  /**
   * Notes a time without any shard. False when it is known, because all shards of a starting process find the same gap.
   * @param from Unix milliseconds
   */
  async gap(conduit_id: string, from: number | null, to: number): Promise<boolean> {
    const rows = await this.db.query(
      `update twitch_conduits set gaps = gaps + 1, gap_from = to_timestamp($2::float8 / 1000),
         gap_to = to_timestamp($3::float8 / 1000)
       where conduit_id = $1 and (gap_from is null or gap_from < to_timestamp($2::float8 / 1000)
         or ($2::float8 is null and gap_to < to_timestamp($3::float8 / 1000) - interval '1 min'))
       returning 1 as one`,
      [conduit_id, from, to],
      'twitch-conduit-gap',
    );
    return rows.length > 0;
  }

  /** Whether the last holder of a shard's link receives over this session: no later holder has opened another one. */
  async isHolder(link: string, session_id: string): Promise<boolean> {
    const rows = await this.db.query(
      `select 1 as one from adapter_links where link = $1 and state ->> 'session_id' = $2 and state_token = token`,
      [link, session_id],
      'twitch-conduit-holder',
    );
    return rows.length > 0;
  }

  /**
   * Returns those of the sessions over which no worker of this installation receives: no link of a shard has kept them
   * and a frame lately. After a worker's death Twitch lists its session for less time than that.
   */
  async foreign(sessions: readonly string[], { id, shard_count }: Conduit): Promise<ReadonlySet<string>> {
    if (sessions.length === 0) return new Set();
    const links = Array.from({ length: shard_count }, (_, shard) => `${SHARD_KIND}:${id}.${shard}`);
    const rows = await this.db.query<{ session_id: string }>(
      `select session_id from unnest($1::text[]) session_id where not exists (
         select from adapter_links where link = any ($2) and state ->> 'session_id' = session_id
           and heard_at > clock_timestamp() - interval '2 min')`,
      [[...sessions], links],
      'twitch-conduit-foreign',
    );
    return new Set(rows.map(({ session_id }) => session_id));
  }

  /** Subscriptions of a channel that exist, were refused or were requested. */
  subscriptions(conduit_id: string, channel_id: string): Promise<ListedSubscription[]> {
    return this.db.query<ListedSubscription & Record<string, unknown>>(
      `select ${SUBSCRIPTION}, asked from twitch_conduit_subscriptions where conduit_id = $1 and channel_id = $2`,
      [conduit_id, channel_id],
      'twitch-conduit-subscriptions',
    );
  }

  /**
   * Returns the subscriptions that changed since, and the time for the next call. The first call returns the time
   * alone.
   */
  async changed(conduit_id: string, since: string | null): Promise<{ rows: KeptSubscription[]; next: string }> {
    const next = await this.now();
    if (since === null) return { rows: [], next };
    const rows = await this.db.query<KeptSubscription & Record<string, unknown>>(
      // A change that was uncommitted during the read of its neighbours is read a little later.
      `select ${SUBSCRIPTION} from twitch_conduit_subscriptions
       where conduit_id = $1 and changed_at > $2::timestamptz - interval '10 s' and not asked`,
      [conduit_id, since],
      'twitch-conduit-changed',
    );
    return { rows, next };
  }

  /**
   * Call before requesting a subscription from Twitch: a successor then checks whether it was made. Stores nothing for
   * a conduit that was replaced meanwhile, as {@link write}.
   */
  async ask(conduit_id: string, channel_id: string, name: string): Promise<void> {
    await this.db.query(
      `insert into twitch_conduit_subscriptions as s (conduit_id, channel_id, name, asked, seen_at, changed_at)
       select $1, $2, $3, true, clock_timestamp(), clock_timestamp()
       where exists (select from twitch_conduits where conduit_id = $1)
       on conflict (conduit_id, channel_id, name) do update set asked = true`,
      [conduit_id, channel_id, name],
      'twitch-conduit-ask',
    );
  }

  async write(conduit_id: string, channel_id: string, changes: readonly SubscriptionChange[]): Promise<void> {
    if (changes.length === 0) return;
    await this.db.query(
      `insert into twitch_conduit_subscriptions as s
         (conduit_id, channel_id, name, subscription_id, since, refused, consent, seen_at, changed_at)
       select $1, $2, r.name, r.subscription_id, r.since, r.refused, r.consent, clock_timestamp(), clock_timestamp()
       from jsonb_to_recordset($3::jsonb)
         as r (name text, subscription_id text, since text, refused text, consent text)
       where exists (select from twitch_conduits where conduit_id = $1)
       on conflict (conduit_id, channel_id, name) do update set subscription_id = excluded.subscription_id,
         since = excluded.since, refused = excluded.refused, consent = excluded.consent, asked = false,
         seen_at = excluded.seen_at, changed_at = excluded.changed_at`,
      [conduit_id, channel_id, JSON.stringify(changes)],
      'twitch-conduit-write',
    );
  }

  /** Notes subscriptions that have ended at Twitch. */
  async ended(subscription_ids: readonly string[]): Promise<void> {
    await this.db.query(
      `update twitch_conduit_subscriptions set subscription_id = null, since = null, changed_at = clock_timestamp()
       where subscription_id = any ($1)`,
      [[...subscription_ids]],
      'twitch-conduit-ended',
    );
  }

  /** Notes that Twitch lists these; returns the known ones. */
  async seen(subscription_ids: readonly string[]): Promise<ReadonlySet<string>> {
    const rows = await this.db.query<{ subscription_id: string }>(
      `update twitch_conduit_subscriptions set seen_at = clock_timestamp()
       where subscription_id = any ($1) returning subscription_id`,
      [[...subscription_ids]],
      'twitch-conduit-seen',
    );
    return new Set(rows.map(({ subscription_id }) => subscription_id));
  }

  /** Whether a row names this subscription, whatever its id. */
  async names(conduit_id: string, { channel_id, name }: NamedSubscription): Promise<boolean> {
    const rows = await this.db.query(
      'select 1 as one from twitch_conduit_subscriptions where conduit_id = $1 and channel_id = $2 and name = $3',
      [conduit_id, channel_id, name],
      'twitch-conduit-names',
    );
    return rows.length > 0;
  }

  async now(): Promise<string> {
    const [row] = await this.db.query<{ now: string }>('select clock_timestamp()::text as now');
    return row!.now;
  }

  /** Returns channels with a subscription that Twitch has not listed since, at most `most`. */
  async unseen(conduit_id: string, since: string, most: number): Promise<string[]> {
    const rows = await this.db.query<{ channel_id: string }>(
      `select distinct channel_id from twitch_conduit_subscriptions
       where conduit_id = $1 and subscription_id is not null and seen_at < $2::timestamptz limit $3`,
      [conduit_id, since, most],
      'twitch-conduit-unseen',
    );
    return rows.map(({ channel_id }) => channel_id);
  }

  /** Ends older subscriptions of a channel that Twitch has not listed since. Returns their number. */
  async endUnseen(conduit_id: string, channel_id: string, since: string): Promise<number> {
    const rows = await this.db.query(
      `update twitch_conduit_subscriptions set subscription_id = null, since = null, changed_at = clock_timestamp()
       where conduit_id = $1 and channel_id = $2 and subscription_id is not null and seen_at < $3::timestamptz
       returning 1 as one`,
      [conduit_id, channel_id, since],
      'twitch-conduit-end-unseen',
    );
    return rows.length;
  }

  /** Returns subscriptions of channels that are not among these, at most `most`, except recently made ones. */
  async strangers(conduit_id: string, channel_ids: readonly string[], most: number): Promise<ListedSubscription[]> {
    return this.db.query<ListedSubscription & Record<string, unknown>>(
      `select ${SUBSCRIPTION}, asked from twitch_conduit_subscriptions
         left join unnest($2::text[]) connected (id) on connected.id = channel_id
       where conduit_id = $1 and connected.id is null and changed_at < clock_timestamp() - interval '10 min'
       order by channel_id limit $3`,
      [conduit_id, [...channel_ids], most],
      'twitch-conduit-strangers',
    );
  }

  async forget(conduit_id: string, { channel_id, name }: KeptSubscription): Promise<void> {
    await this.db.query(
      'delete from twitch_conduit_subscriptions where conduit_id = $1 and channel_id = $2 and name = $3',
      [conduit_id, channel_id, name],
      'twitch-conduit-forget',
    );
  }

  /** Deletes the subscriptions of a conduit that no longer exists. */
  async forgetAll(conduit_id: string): Promise<void> {
    await this.db.query('delete from twitch_conduit_subscriptions where conduit_id = $1', [conduit_id]);
  }

  /**
   * Deletes the conduits of other apps, with their subscriptions: Twitch has ended them by then, 72 hours after their
   * last shard.
   */
  async forgetFormerApps(client_id: string): Promise<void> {
    await this.db.query(
      `with former as (
         delete from twitch_conduits
         where client_id <> $1 and coalesce(checked_at, '-infinity') < clock_timestamp() - interval '4 days'
         returning conduit_id
       )
       delete from twitch_conduit_subscriptions where conduit_id in (select conduit_id from former)`,
      [client_id],
      'twitch-conduit-former-apps',
    );
  }

  private async row(client_id: string): Promise<ConduitRow | undefined> {
    const [row] = await this.db.query<ConduitRow>(
      `select client_id, conduit_id, shard_count, others, receives_from is not null as receives,
         paused_at is not null as is_paused, checked_at, checks,
         sessions, gaps, gap_from, gap_to
       from twitch_conduits where client_id = $1`,
      [client_id],
      'twitch-conduit',
    );
    return row;
  }
}

const msOf = (time: string | null): number | null => (time === null ? null : Date.parse(time));
