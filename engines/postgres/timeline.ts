import type pg from 'pg';
import { OutOfService } from './errors';
import type { Queryable } from './port';

/** Milliseconds after which a new connection that does not answer is given up. */
const ANSWER_MS = 5_000;
/** SQLSTATEs of a server that does not offer these functions to this role. */
const NOT_OFFERED = ['0A000', '42501', '42883'];
const TIMELINE = `select case when not pg_is_in_recovery()
  then left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline`;

/**
 * Guards the connections of one process against a failover: all of them must reach the timeline of its first one,
 * because what the process keeps in memory (events, positions) may be lost on another timeline. A standby is refused
 * until it is promoted.
 */
export class TimelineGuard {
  private known: string | undefined;
  private changed = false;

  /** @param onChanged called once, with one line for the operator: the process must end */
  constructor(private readonly onChanged: (reason: string) => void) {}

  /** The timeline of the first connection; undefined where the server does not offer it. */
  get timeline(): string | undefined {
    return this.known;
  }

  /** @throws OutOfService for a connection that must not be used */
  async check(client: pg.ClientBase): Promise<void> {
    const query = { text: TIMELINE, query_timeout: ANSWER_MS } as pg.QueryConfig;
    const timeline = await client.query<{ timeline: string | null }>(query).then(
      ({ rows }) => rows[0]!.timeline,
      (error: { code?: string }) => {
        if (NOT_OFFERED.includes(error.code ?? '')) return undefined;
        throw error;
      },
    );
    if (timeline === undefined) return;
    if (timeline === null) throw new OutOfService('the database server is a standby');
    this.known ??= timeline;
    if (timeline === this.known) return;
    const why = 'a standby took over, or it was recovered';
    const reason = `the database is on timeline ${timeline} and was on ${this.known}: ${why}`;
    if (!this.changed) this.onChanged(reason);
    this.changed = true;
    throw new OutOfService(reason);
  }
}

/**
 * Stores the timeline of the database and returns the realtime epoch. A timeline other than the stored one may lack
 * pushed messages, so it begins a new epoch: a resume answers `recovered: false`.
 */
export async function keepTimeline(db: Queryable, timeline: string): Promise<string> {
  await db.query(
    `with kept as (
       insert into installation as i (name, value) values ('timeline', $1)
       on conflict (name) do update set value = excluded.value where i.value <> excluded.value
       returning xmax <> 0 as moved)
     update installation set value = substr(md5(gen_random_uuid()::text), 1, 8)
     where name = 'epoch' and exists (select from kept where moved)`,
    [timeline],
  );
  const [epoch] = await db.query<{ value: string }>(`select value from installation where name = 'epoch'`);
  return epoch!.value;
}
