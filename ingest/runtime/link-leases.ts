import { randomUUID } from 'node:crypto';
import { type Queryable, textArray } from '../../engines/postgres/port';
import { Collector } from '../../kernel/collector';
import type { Json } from '../../kernel/json';
import type { Vendor } from '../../domain/vendors';
import type { LinkStatus, LinkedConnection } from './adapter';
import { storableJson } from './text';
import { instantAt } from './times';

/** Known by its fence token: of two holders the one with the greater token is the later one. */
export interface LinkFence {
  /** `twitch:<connection_id>`. */
  readonly link: string;
  readonly token: number;
}

/** A connection that this process has taken. */
export interface TakenLink {
  fence: LinkFence;
  /** What the holder before kept; null when there was none. */
  state: Json;
  /** When a holder before last heard from the vendor, Unix milliseconds. */
  heard_at: number | null;
  /** How long ago the holder before gave it away, which reads on for a while; null when it did not. */
  given_away_ms_ago: number | null;
}

/** What is told of a connection; only what is there is written. */
export interface LinkReport {
  status?: LinkStatus;
  detail?: string | null;
  state?: Json;
  /** Unix milliseconds. */
  heard_at?: number;
  missed?: { from: number | null; to: number; detail: string };
  /** Whether from here on another process may take it, while this one reads on. */
  given_away?: boolean;
  /** How long ago that was; default: now. */
  given_away_ms_ago?: number;
}

/** Whose a connection is: the fence that every write under it is held against. */
export interface LinkLeases {
  /** Takes it from whoever had it, who from now on writes nothing any more. */
  take(vendor: Vendor, connection: LinkedConnection): Promise<TakenLink>;
  /** Those of them that nobody has taken since; one statement for all. */
  current(fences: readonly LinkFence[]): Promise<ReadonlySet<LinkFence>>;
  /** Written while nobody has taken it since; false when somebody has. What comes together is one statement. */
  report(fence: LinkFence, report: LinkReport): Promise<boolean>;
  /** What the one who took it since has kept; undefined while nobody has, or nothing was kept. */
  successor(fence: LinkFence): Promise<{ taken: boolean; state?: Json }>;
  /** Whether another living process holds links of this vendor; one of the previous release lists their names. */
  wanted(link: string): Promise<boolean>;
  /** Forgets it, unless somebody has taken it since. */
  forget(fence: LinkFence): Promise<void>;
  /** Deletes the row of a connection that exists no more, and that nobody holds. */
  drop(link: string): Promise<void>;
}

export const linkName = (vendor: Vendor, { connection_id }: LinkedConnection): string => `${vendor}:${connection_id}`;

// Never below what a row that is gone has had: a holder of then would pass for the one of now.
const FIRST_TOKEN = '(extract(epoch from clock_timestamp()) * 1000)::bigint';

interface Reported {
  fence: LinkFence;
  report: LinkReport;
}

/** How long reports gather: a process holds many connections, and each has something to tell now and then. */
const GATHER_MS = 20;

/** Leases in the table `adapter_links`. `session` is how other processes know that this one lives. */
export function createLinkLeases(db: Queryable, session: { readonly lock: number }): LinkLeases {
  const holder = randomUUID();
  const reports = new Collector<Reported, boolean>({ send: (group) => write(db, group), gather_ms: GATHER_MS });
  return {
    async take(vendor, connection) {
      const { connection_id, account_id } = connection;
      const link = linkName(vendor, connection);
      const [row] = await db.query(
        `with before as (select given_away_at from adapter_links where link = $1 for update)
         insert into adapter_links as l (link, vendor, connection_id, account_id, token, holder, status, status_at)
         select $1, $2, $3, $4, ${FIRST_TOKEN}, $5, 'connecting', clock_timestamp() from (select) one left
           join before on true
         on conflict (link) do update set
           token = greatest(l.token + 1, excluded.token), holder = excluded.holder, account_id = excluded.account_id,
           status = excluded.status, detail = null, status_at = excluded.status_at, given_away_at = null
         returning token, state, heard_at,
           (select (extract(epoch from clock_timestamp() - given_away_at) * 1000)::float8 from before)
             as given_away_ms_ago`,
        [link, vendor, connection_id, account_id, holder],
        'adapter-link-take',
      );
      const { token, state, heard_at, given_away_ms_ago } = row!;
      return { fence: { link, token }, state, heard_at: heard_at && Date.parse(heard_at), given_away_ms_ago };
    },

    async current(fences) {
      // Answers with those that are lost, as a rule none: a row for each that is held cost as much as storing it.
      const [row] = await db.query<{ lost: string }>(
        `select coalesce(string_agg(place::text, ','), '') as lost
         from unnest($1::text[], $2::bigint[]) with ordinality as asked (link, token, place)
         where not exists (select from adapter_links l where l.link = asked.link and l.token = asked.token)`,
        [textArray(fences.map(({ link }) => link)), `{${fences.map(({ token }) => token).join(',')}}`],
        'adapter-link-lost',
      );
      const current = new Set(fences);
      // One row always comes: no answer must never look as if nothing were lost.
      for (const place of row!.lost.split(',').filter(Boolean)) current.delete(fences[Number(place) - 1]!);
      return current;
    },

    report: (fence, report) => reports.add({ fence, report }),

    async successor({ link, token }) {
      const [row] = await db.query<{ token: number; state: Json; state_token: number | null }>(
        'select token, state, state_token from adapter_links where link = $1',
        [link],
        'adapter-link-successor',
      );
      // A row that is gone: the connection is no more, and nobody follows.
      if (row === undefined || row.token === token) return { taken: row === undefined };
      return row.state_token === row.token ? { taken: true, state: row.state } : { taken: true };
    },

    async wanted(link) {
      const rows = await db.query(
        `select 1 as one from work_members
         where ($3 = any (kinds) or $1 = any (names)) and session_lock <> $2
           and renewed_at > clock_timestamp() - interval '10 s'`,
        [link, session.lock, link.slice(0, link.indexOf(':'))],
      );
      return rows.length > 0;
    },

    async forget({ link, token }) {
      await db.query('delete from adapter_links where link = $1 and token = $2', [link, token]);
    },

    async drop(link) {
      await db.query('delete from adapter_links where link = $1', [link]);
    },
  };
}

/** The last of each link's reports counts, member by member. */
async function write(db: Queryable, group: readonly Reported[]): Promise<boolean[]> {
  const merged = new Map<LinkFence, LinkReport>();
  for (const { fence, report } of group) merged.set(fence, { ...merged.get(fence), ...report });
  const rows = [...merged].map(
    ([{ link, token }, { status, detail, state, heard_at, missed, given_away, given_away_ms_ago }]) => ({
      link,
      token,
      ...(status !== undefined && { status, detail: detail ?? null }),
      ...(state !== undefined && { state }),
      ...(heard_at !== undefined && { heard_at: instant(heard_at) }),
      ...(missed && {
        missed_from: missed.from === null ? null : instant(missed.from),
        missed_to: instant(missed.to),
        missed_detail: missed.detail,
      }),
      ...(given_away !== undefined && { given_away, given_away_ms_ago: given_away_ms_ago ?? 0 }),
    }),
  );
  const written = await db.query<{ link: string; token: number }>(
    `update adapter_links l set
       status = coalesce(r.status, l.status),
       detail = case when r.status is null then l.detail else r.detail end,
       status_at = case when r.status is null then l.status_at else clock_timestamp() end,
       state = coalesce(r.state, l.state),
       state_token = case when r.state is null then l.state_token else l.token end,
       heard_at = greatest(r.heard_at, l.heard_at),
       missed_from = case when r.missed_to is null then l.missed_from else r.missed_from end,
       missed_to = coalesce(r.missed_to, l.missed_to),
       missed_detail = coalesce(r.missed_detail, l.missed_detail),
       given_away_at = case when r.given_away is null then l.given_away_at when r.given_away
         then clock_timestamp() - make_interval(secs => r.given_away_ms_ago / 1000) end
     from jsonb_to_recordset($1::jsonb) as r (link text, token bigint, status text, detail text, state jsonb,
       heard_at timestamptz, missed_from timestamptz, missed_to timestamptz, missed_detail text,
       given_away boolean, given_away_ms_ago float8)
     where l.link = r.link and l.token = r.token
     returning l.link, l.token`,
    // What PostgreSQL does not keep would fail the reports of all links in the group, again and again.
    [storableJson(JSON.stringify(rows))],
    'adapter-link-report',
  );
  const held = new Set(written.map(({ link, token }) => `${link} ${token}`));
  return group.map(({ fence }) => held.has(`${fence.link} ${fence.token}`));
}

/** Vendors' clocks may say anything. */
const instant = (ms: number): string => instantAt(ms) ?? new Date().toISOString();
