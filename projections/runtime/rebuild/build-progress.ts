import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../../engines/postgres/port';
import type { Projection } from '../../../kernel/projection';
import { projectionFingerprint } from './fingerprint';
import { ident } from '../../../kernel/sql';

/** Progress of an interrupted build. */
export interface Reached {
  /** Fences the shadow against the earlier builder. */
  token: string;
  loading: boolean;
  places: Map<number, string>;
  records: number;
}

/**
 * Records the begin of a build on an empty shadow and returns its token. Runs in the transaction that creates the
 * shadow.
 */
export async function beginBuild(tx: Queryable, p: Projection, engine: string, shadow: string): Promise<string> {
  const token = randomUUID();
  await tx.query(`create table ${ident(shadow)}.rebuild_run (token uuid primary key)`);
  await tx.query(`insert into ${ident(shadow)}.rebuild_run values ($1)`, [token]);
  await endBuild(tx, p.name);
  await tx.query(
    'insert into projection_builds (projection, version, engine, program, token) values ($1, $2, $3, $4, $5)',
    [p.name, p.version, engine, await projectionFingerprint(tx, p), token],
  );
  return token;
}

/**
 * Takes over an interrupted build of the same program from the same source under a new token: a process that still
 * writes with the old token fails. Returns null without such a build; a change of live rows other than from their
 * source, such as an erasure, deletes it.
 */
export async function resumeBuild(
  tx: Queryable,
  p: Projection,
  engine: string,
  shadow: string,
): Promise<Reached | null> {
  const [build] = await tx.query<{ token: string; loading: boolean }>(
    `select token, loading from projection_builds
     where projection = $1 and version = $2 and engine = $3 and program = $4 for update`,
    [p.name, p.version, engine, await projectionFingerprint(tx, p)],
  );
  const [there] = await tx.query('select to_regclass($1) is not null as shadow', [`${ident(shadow)}.rebuild_run`]);
  if (!build || !there!.shadow) return null;
  const token = randomUUID();
  const mine = await tx.query(
    `update ${ident(shadow)}.rebuild_run set token = $1 where token = $2 returning 1 as one`,
    [token, build.token],
  );
  if (mine.length === 0) return null;
  await tx.query('update projection_builds set token = $2 where projection = $1', [p.name, token]);
  const rows = await tx.query<{ partition: number; position: string; records: number }>(
    'select partition, position, records from projection_build_places where projection = $1',
    [p.name],
  );
  return {
    token,
    loading: build.loading,
    places: new Map(rows.map(({ partition, position }) => [partition, position])),
    records: rows.reduce((sum, { records }) => sum + records, 0),
  };
}

/** Records the progress of a partition, in the transaction that wrote its page. */
export async function saveProgress(
  tx: Queryable,
  projection: string,
  partition: number,
  { next, read }: { next: string; read: number },
): Promise<void> {
  await tx.query(
    `insert into public.projection_build_places as b (projection, partition, position, records) values ($1, $2, $3, $4)
     on conflict (projection, partition) do update
       set position = excluded.position, records = b.records + excluded.records, updated_at = clock_timestamp()`,
    [projection, partition, next, read],
    'projection_build_place',
  );
}

/** Records that the load phase has ended. */
export async function keepLoaded(tx: Queryable, projection: string): Promise<void> {
  await tx.query('update public.projection_builds set loading = false where projection = $1', [projection]);
}

/** Deletes the build's progress: the build is swapped in, or its rows are no longer valid. */
export async function endBuild(tx: Queryable, projection: string): Promise<void> {
  await tx.query('delete from public.projection_build_places where projection = $1', [projection]);
  await tx.query('delete from public.projection_builds where projection = $1', [projection]);
}
