import { randomUUID } from 'node:crypto';
import type { Queryable } from '../../engines/postgres/port';
import type { Projection } from '../../kernel/projection';
import { madeOf } from './program';
import { ident } from '../../kernel/sql';

/** What an interrupted build has reached. */
export interface Reached {
  /** Fences the shadow against whoever built there before. */
  token: string;
  loading: boolean;
  places: Map<number, string>;
  records: number;
}

/** Notes that a build begins on an empty shadow; its token. Inside the transaction that lays the shadow out. */
export async function beginBuild(tx: Queryable, p: Projection, engine: string, shadow: string): Promise<string> {
  const token = randomUUID();
  await tx.query(`create table ${ident(shadow)}.rebuild_run (token uuid primary key)`);
  await tx.query(`insert into ${ident(shadow)}.rebuild_run values ($1)`, [token]);
  await endBuild(tx, p.name);
  await tx.query(
    'insert into projection_builds (projection, version, engine, program, token) values ($1, $2, $3, $4, $5)',
    [p.name, p.version, engine, await madeOf(tx, p), token],
  );
  return token;
}

/**
 * What is left of a build by the same program from the same source, taken over under a new token: whoever still writes
 * there with the old one fails. Null when there is none, or when live rows were changed beside their source since.
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
    [p.name, p.version, engine, await madeOf(tx, p)],
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

/** Notes how far a partition is, in the transaction that wrote its page. */
export async function keepPlace(
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

/** Notes that what is done for all rows at once was done. */
export async function keepLoaded(tx: Queryable, projection: string): Promise<void> {
  await tx.query('update public.projection_builds set loading = false where projection = $1', [projection]);
}

/** Forgets the build: it is swapped in, or its rows are no longer what the live ones will be. */
export async function endBuild(tx: Queryable, projection: string): Promise<void> {
  await tx.query('delete from public.projection_build_places where projection = $1', [projection]);
  await tx.query('delete from public.projection_builds where projection = $1', [projection]);
}
