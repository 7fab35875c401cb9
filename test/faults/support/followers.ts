import { PROJECTIONS, REACTORS } from '../../../bin/areas';
import { JOB_SCHEMA } from '../../../engines/jobs/names';
import type { Ends } from './ends';
import type { Lumio } from './lumio';

/** Declared projections and reactors that have not yet applied all that is durable, and jobs that are due. */
export async function followersBehind(on: Pick<Lumio, 'query'>, ends: Ends): Promise<string[]> {
  const rows = await on.query('select projection, source, partition, position from checkpoints');
  const positionOf = (name: string, partition: number): string | undefined =>
    rows.find((row) => row.projection === name && row.partition === partition)?.position;
  const behind: string[] = [];
  for (const { name, from } of PROJECTIONS) {
    if (from.kind === 'topic') {
      const lagging = [...(await ends.records(from.topic))].filter(
        ([partition, next]) => next > Number(positionOf(name, partition) ?? 0),
      );
      if (lagging.length > 0) behind.push(name);
    } else if (!(await hasReached(ends, positionOf(name, 0)))) behind.push(name);
  }
  for (const { name } of REACTORS)
    if (!(await hasReached(ends, positionOf(`reactor:${name}`, 0)))) behind.push(`reactor:${name}`);
  const [jobs] = await on.query(
    `select count(*)::int as due from ${JOB_SCHEMA}._private_jobs where run_at <= now() and attempts < max_attempts`,
  );
  if (jobs.due > 0) behind.push(`${jobs.due} jobs`);
  return behind;
}

const hasReached = async (ends: Ends, position: string | undefined): Promise<boolean> =>
  position !== undefined && (await ends.reached(position));
