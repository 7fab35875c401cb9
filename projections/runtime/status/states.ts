import type { Broker } from '../../../engines/broker/port';
import type { EventStore } from '../../../engines/event-store/port';
import type { Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { BEGINNING, readCheckpoints } from '../checkpoint/checkpoints';
import type { RunnerState } from './runner-states';

/** Report of a process about one projection. */
export interface ReportedState {
  projection: string;
  version: number;
  state: RunnerState;
  /** Records or events applied per second, since the last report. */
  rate: number;
}

/** Stores the reports of this process, and deletes processes without a report for a day. */
export async function reportStates(db: Queryable, holder: string, said: readonly ReportedState[]): Promise<void> {
  const column = <K extends keyof ReportedState>(name: K) => said.map((one) => one[name]);
  await db.query(
    `with gone as (delete from projection_states where observed_at < clock_timestamp() - interval '1 day')
     insert into projection_states as s (projection, holder, version, state, rate)
     select projection, $1, version, state, rate
       from unnest($2::text[], $3::integer[], $4::text[], $5::real[]) as n (projection, version, state, rate)
     on conflict (projection, holder) do update
       set version = excluded.version, state = excluded.state, rate = excluded.rate, observed_at = clock_timestamp()`,
    [holder, column('projection'), column('version'), column('state'), column('rate')],
    'projection_states_say',
  );
}

/** Reports that the process drives nothing any more; its last report stays readable. */
export async function reportEnded(db: Queryable, holder: string): Promise<void> {
  await db.query(`update projection_states set state = 'ended', observed_at = clock_timestamp() where holder = $1`, [
    holder,
  ]);
}

export interface ProjectionState {
  name: string;
  /** Version of the live rows; null before the first start. */
  version: number | null;
  /** Version of this program. */
  program_version: number;
  /** State of the most active process; `not running` without a recent report. */
  state: RunnerState | 'not running';
  /** Records not applied; of domain events 1 when behind. Null before the first start. */
  behind: number | null;
  /** Seconds since its checkpoint moved last, while it is behind. */
  behind_seconds: number;
  /** Records or events per second, from the last report. */
  rate: number;
  /** Records that a build of new tables has read; null without such a build. */
  built: number | null;
}

/** Precedence of states: the first that any active process reports is the projection's state. */
const STATE_PRECEDENCE: readonly RunnerState[] = [
  'running',
  'building',
  'stopped',
  'needs_newer_build',
  'refused',
  'needs_rebuild',
  'backoff',
  'superseded',
  'starting',
  'standby',
];
/** A process without a report for this many seconds is gone; each reports every five seconds. */
export const REPORT_STALE_S = 20;

export interface StatesDeps {
  db: Queryable;
  broker: Pick<Broker, 'bounds'>;
  events: Pick<EventStore, 'head' | 'compare'>;
  projections: readonly Projection[];
}

/** State of every projection of this program from the tables, whether or not any process runs. */
export async function projectionStates(deps: StatesDeps): Promise<ProjectionState[]> {
  const { db, projections } = deps;
  const said = await db.query<ReportedState & { age: number }>(
    `select projection, version, state, rate, extract(epoch from clock_timestamp() - observed_at)::float8 as age
     from projection_states order by observed_at desc`,
  );
  const builds = await db.query<{ projection: string; records: number }>(
    `select b.projection, coalesce(sum(p.records), 0)::int8 as records
     from projection_builds b left join projection_build_places p using (projection) group by 1`,
  );
  const moved = await db.query<{ projection: string; seconds: number }>(
    `select projection, extract(epoch from clock_timestamp() - max(updated_at))::float8 as seconds
     from checkpoints group by projection`,
  );
  const states: ProjectionState[] = [];
  for (const p of projections) {
    const mine = said.filter(({ projection }) => projection === p.name);
    const living = mine.filter(({ age }) => age < REPORT_STALE_S);
    const stored = [...(await readCheckpoints(db, p)).values()];
    const behind = stored.length === 0 ? null : await behindOf(deps, p, new Map(stored.map((c) => [c.partition, c])));
    states.push({
      name: p.name,
      version: stored[0]?.version ?? null,
      program_version: p.version,
      state: STATE_PRECEDENCE.find((state) => living.some((one) => one.state === state)) ?? 'not running',
      behind,
      behind_seconds: behind ? (moved.find(({ projection }) => projection === p.name)?.seconds ?? 0) : 0,
      rate: living.length > 0 ? Math.max(...living.map(({ rate }) => rate)) : (mine[0]?.rate ?? 0),
      built: builds.find(({ projection }) => projection === p.name)?.records ?? null,
    });
  }
  return states;
}

/** Records after the checkpoints; of domain events, whose positions cannot be counted, 1 when there are any. */
export async function behindOf(
  { broker, events }: Pick<StatesDeps, 'broker' | 'events'>,
  { from }: Projection,
  stored: ReadonlyMap<number, { position: string }>,
): Promise<number> {
  if (from.kind === 'domain_events') {
    const head = await events.head();
    const at = stored.get(0)?.position ?? BEGINNING;
    return head !== null && (at === BEGINNING || events.compare(head, at) > 0) ? 1 : 0;
  }
  let behind = 0;
  for (const [partition, { next }] of await broker.bounds(from.topic)) {
    behind += Math.max(0, next - Number(stored.get(partition)?.position ?? 0));
  }
  return behind;
}
