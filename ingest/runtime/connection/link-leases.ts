import { randomUUID } from 'node:crypto';
import { type Queryable, textArray } from '../../../engines/postgres/port';
import { Collector } from '../../../lib/async/collector';
import type { Json } from '../../../lib/json/json';
import type { Vendor } from '../../../domain/common/vendors';
import type { LinkStatus, LinkedConnection } from './adapter';
import { storableJson } from '../parse/text';
import { instantAt } from '../parse/times';

/** Identifies a holder by its fence token: of two holders the one with the greater token is the later one. */
export interface LinkFence {
  /** `twitch:<connection_id>`. */
  readonly link: string;
  readonly token: number;
}

/** A connection that this process has taken. */
export interface TakenLink {
  fence: LinkFence;
  /** Kept state of the former holder; null without one. */
  state: Json;
  /** Last sign of life from the vendor to a former holder, Unix milliseconds. */
  heard_at: number | null;
  /**
   * Moment until which the former holder reads on, by this process's `performance.now()`; null when it gave nothing
   * away.
   */
  reads_on_until: number | null;
}

/** Report about a connection; only present members are written. */
export interface LinkReport {
  status?: LinkStatus;
  detail?: string | null;
  state?: Json;
  /** State while the connection is being opened: the part that is received already. */
  beginning?: Json;
  /** Unix milliseconds. */
  heard_at?: number;
  missed?: { from: number | null; to: number; detail: string };
  /** Moment until which this or the former process reads on by `performance.now()`; null: no process reads on. */
  reads_on_until?: number | null;
}

/** Successor that took a connection, and its kept state. */
export interface Successor {
  /** True also for a connection that no longer exists. */
  taken: boolean;
  /** Whether another active process holds links of this vendor. */
  wanted: boolean;
  /** Absent until all of the connection is open. */
  state?: Json;
  /** State of the part that it receives until then; absent when nothing is, or unknown. */
  beginning?: Json;
}

/** Ownership of connections: the fence that every write is checked against. */
export interface LinkLeases {
  /** Takes a connection from its holder, whose writes fail from now on. */
  take(vendor: Vendor, connection: LinkedConnection): Promise<TakenLink>;
  /** Returns the fences that no process has taken since; one statement for all. */
  current(fences: readonly LinkFence[]): Promise<ReadonlySet<LinkFence>>;
  /**
   * Writes a report unless another process has taken the connection: then false. Concurrent reports share one
   * statement.
   */
  report(fence: LinkFence, report: LinkReport): Promise<boolean>;
  /** Reads the successor; concurrent calls share one statement, because many links are handed over together. */
  successor(fence: LinkFence): Promise<Successor>;
  /** Deletes the row, unless another process has taken the connection. */
  forget(fence: LinkFence): Promise<void>;
  /** Deletes the row of a connection that no longer exists, and that no process holds. */
  drop(link: string): Promise<void>;
}

export const linkName = (vendor: Vendor, { connection_id, kind = vendor }: LinkedConnection): string =>
  `${kind}:${connection_id}`;

// Never below the token of a deleted row: its old holder would count as the present one.
const FIRST_TOKEN = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

const UNIX_MS = (instant: string): string => `(extract(epoch from ${instant}) * 1000)::float8`;

interface Reported {
  fence: LinkFence;
  report: LinkReport;
}

interface SuccessorRow {
  place: number;
  taken: boolean;
  state: Json;
  beginning: Json;
}

/** A holder of the previous release reads on for this time after `given_away_at`, in milliseconds. */
const PREVIOUS_READS_ON_MS = 4_000;
/** Gathering time of reports and reads: a process holds many connections, and each has some now and then. */
const GATHER_MS = 20;

/** Leases in the table `adapter_links`. By the lock of `session` other processes recognise that this one is active. */
export function createLinkLeases(db: Queryable, session: { readonly lock: number }): LinkLeases {
  const holder = randomUUID();
  /** The database's Unix milliseconds at `performance.now()` 0, or somewhat less. */
  let clock_ms = 0;
  /** Each answer counts: after a failover another machine's clock applies. */
  const noteClock = (now_ms: number) => (clock_ms = now_ms - performance.now());
  const reports = new Collector<Reported, boolean>({
    send: (group) => write(db, group, { clock_ms, noteClock }),
    gather_ms: GATHER_MS,
  });
  const successors = new Collector<LinkFence, Successor>({
    send: (group) => readSuccessors(db, session.lock, group),
    gather_ms: GATHER_MS,
  });
  return {
    async take(vendor, connection) {
      const { connection_id, account_id } = connection;
      const link = linkName(vendor, connection);
      const asked_at = performance.now();
      const [row] = await db.query(
        `with before as (
           select given_away_at, case when reads_on_token = token then reads_on_until end as reads_on_until
           from adapter_links where link = $1 for update)
         insert into adapter_links as l (link, vendor, connection_id, account_id, token, holder, status, status_at)
         select $1, $2, $3, $4, ${FIRST_TOKEN}, $5, 'connecting', clock_timestamp() from (select) one left
           join before on true
         on conflict (link) do update set
           token = greatest(l.token + 1, excluded.token), holder = excluded.holder, account_id = excluded.account_id,
           status = excluded.status, detail = null, status_at = excluded.status_at, given_away_at = null
         returning token, state, heard_at, ${UNIX_MS('clock_timestamp()')} as now_ms, (
           select ${UNIX_MS(`coalesce(reads_on_until, given_away_at + $6 * interval '1 ms')`)}
           from before where given_away_at is not null) as reads_on_until_ms`,
        [link, vendor, connection_id, account_id, holder, PREVIOUS_READS_ON_MS],
        'adapter-link-take',
      );
      const { token, state, heard_at, now_ms, reads_on_until_ms } = row!;
      // Of the two possible moments this process uses the earlier one, and announces it to others.
      noteClock(now_ms);
      const reads_on_until = reads_on_until_ms === null ? null : reads_on_until_ms - now_ms + asked_at;
      return { fence: { link, token }, state, heard_at: heard_at && Date.parse(heard_at), reads_on_until };
    },

    async current(fences) {
      // Returns the lost ones, as a rule none: a row for each held one costs as much as storing it.
      const [row] = await db.query<{ lost: string; now_ms: number }>(
        `select coalesce(string_agg(place::text, ','), '') as lost, ${UNIX_MS('clock_timestamp()')} as now_ms
         from unnest($1::text[], $2::bigint[]) with ordinality as asked (link, token, place)
         where not exists (select from adapter_links l where l.link = asked.link and l.token = asked.token)`,
        [textArray(fences.map(({ link }) => link)), `{${fences.map(({ token }) => token).join(',')}}`],
        'adapter-link-lost',
      );
      noteClock(row!.now_ms);
      const current = new Set(fences);
      // Exactly one row is returned, so that a missing answer never means that nothing is lost.
      for (const place of row!.lost.split(',').filter(Boolean)) current.delete(fences[Number(place) - 1]!);
      return current;
    },

    report: (fence, report) => reports.add({ fence, report }),

    successor: (fence) => successors.add(fence),

    async forget({ link, token }) {
      await db.query('delete from adapter_links where link = $1 and token = $2', [link, token]);
    },

    async drop(link) {
      await db.query('delete from adapter_links where link = $1', [link]);
    },
  };
}

/** Returns rows only for links that another process has taken, or that no process wants. */
async function readSuccessors(db: Queryable, lock: number, group: readonly LinkFence[]): Promise<Successor[]> {
  const rows = await db.query<SuccessorRow>(
    `with others as (
       select kinds, names from work_members
       where session_lock <> $3 and renewed_at > clock_timestamp() - interval '10 s'
     ), asked as (
       select a.*, l.token is distinct from a.held as taken, l.state, l.state_token, l.beginning, l.beginning_token,
         l.token
       from unnest($1::text[], $2::bigint[]) with ordinality as a (link, held, place)
         left join adapter_links l on l.link = a.link
     )
     select place, taken, case when taken and state_token = token then state end as state,
       case when taken and beginning_token = token then beginning end as beginning
     from asked
     where taken or not exists (
       -- A member of the previous release lists its names instead of their kinds.
       select from others o where split_part(asked.link, ':', 1) = any (o.kinds) or asked.link = any (o.names))`,
    [textArray(group.map(({ link }) => link)), `{${group.map(({ token }) => token).join(',')}}`, lock],
    'adapter-link-successors',
  );
  const found: Successor[] = group.map(() => ({ taken: false, wanted: true }));
  for (const { place, taken, state, beginning } of rows) {
    const known = { ...(state !== null && { state }), ...(beginning !== null && { beginning }) };
    found[place - 1] = { taken, wanted: taken, ...known };
  }
  return found;
}

/** Merges each link's reports: the last value of each member counts. */
async function write(
  db: Queryable,
  group: readonly Reported[],
  { clock_ms, noteClock }: { clock_ms: number; noteClock(now_ms: number): void },
): Promise<boolean[]> {
  const merged = new Map<LinkFence, LinkReport>();
  for (const { fence, report } of group) merged.set(fence, { ...merged.get(fence), ...report });
  const rows = [...merged].map(
    ([{ link, token }, { status, detail, state, beginning, heard_at, missed, reads_on_until }]) => ({
      link,
      token,
      ...(status !== undefined && { status, detail: detail ?? null }),
      ...(state !== undefined && { state }),
      ...(beginning !== undefined && { beginning }),
      ...(heard_at !== undefined && { heard_at: instant(heard_at) }),
      ...(missed && {
        missed_from: missed.from === null ? null : instant(missed.from),
        missed_to: instant(missed.to),
        missed_detail: missed.detail,
      }),
      ...(reads_on_until !== undefined && {
        given_away: reads_on_until !== null,
        reads_on_until: reads_on_until === null ? null : instant(clock_ms + reads_on_until),
        reads_on_ms: reads_on_until === null ? null : reads_on_until - performance.now(),
      }),
    }),
  );
  const written = await db.query<{ link: string; token: number; now_ms: number }>(
    `update adapter_links l set
       status = coalesce(r.status, l.status),
       detail = case when r.status is null then l.detail else r.detail end,
       status_at = case when r.status is null then l.status_at else clock_timestamp() end,
       state = coalesce(r.state, l.state),
       state_token = case when r.state is null then l.state_token else l.token end,
       beginning = coalesce(r.beginning, l.beginning),
       beginning_token = case when r.beginning is null then l.beginning_token else l.token end,
       heard_at = greatest(r.heard_at, l.heard_at),
       missed_from = case when r.missed_to is null then l.missed_from else r.missed_from end,
       missed_to = coalesce(r.missed_to, l.missed_to),
       missed_detail = coalesce(r.missed_detail, l.missed_detail),
       -- So that a holder of the previous release, which adds its own time, reads the same moment.
       given_away_at = case when r.given_away is null then l.given_away_at when r.given_away
         then least(clock_timestamp(), r.ends_at - $2 * interval '1 ms') end,
       reads_on_until = case when r.given_away then r.ends_at else l.reads_on_until end,
       reads_on_token = case when r.given_away then l.token else l.reads_on_token end
     from (
       -- The clock of a database that has taken over may be behind the one that was read.
       select *, least(reads_on_until, clock_timestamp() + reads_on_ms * interval '1 ms') as ends_at
       from jsonb_to_recordset($1::jsonb) as given (link text, token bigint, status text, detail text, state jsonb,
         beginning jsonb, heard_at timestamptz, missed_from timestamptz, missed_to timestamptz, missed_detail text,
         given_away boolean, reads_on_until timestamptz, reads_on_ms float8)
     ) r
     where l.link = r.link and l.token = r.token
     returning l.link, l.token, ${UNIX_MS('clock_timestamp()')} as now_ms`,
    // Text that PostgreSQL cannot store would fail the reports of all links in the group, again and again.
    [storableJson(JSON.stringify(rows)), PREVIOUS_READS_ON_MS],
    'adapter-link-report',
  );
  const last = written.at(-1);
  if (last !== undefined) noteClock(last.now_ms);
  const held = new Set(written.map(({ link, token }) => `${link} ${token}`));
  return group.map(({ fence }) => held.has(`${fence.link} ${fence.token}`));
}

/** Vendors' clocks may have any value. */
const instant = (ms: number): string => instantAt(ms) ?? new Date().toISOString();
