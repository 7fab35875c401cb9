import type { Broker } from '../../engines/broker/port';
import type { Queryable } from '../../engines/postgres/port';
import { pause } from '../../lib/async/signal';

/** Step of the schema whose column refuses batches that were decoded before an erasure. */
const FENCE_STEP = '0296-checkpoint-erasures';
/** Days in which a node of a release without that fence may still run. */
const ROLLING_DAYS = 7;
/** A new installation applies all its steps within this time, minutes. */
const INSTALL_MINUTES = 10;
/** A checkpoint that stands still for longer has no batch: the server ends one after 30 s without a statement. */
const STANDSTILL_MS = 35_000;
const LOOK_MS = 200;

/** True while nodes of the previous release may run, which commit batches decoded before an erasure. */
export async function unfencedNodesMayRun(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ rolling: boolean }>(
    `select exists (
       select from schema_migrations fence where fence.name = $1
         and fence.migration_time > now() - make_interval(days => $2)
         and exists (select from schema_migrations earlier
           where earlier.migration_time < fence.migration_time - make_interval(mins => $3))
     ) as rolling`,
    [FENCE_STEP, ROLLING_DAYS, INSTALL_MINUTES],
  );
  return row!.rolling;
}

/**
 * Waits until the checkpoints pass the current ends of the topic, so that no batch decoded before is under way, or
 * until they stand still, since then no process has one.
 * @throws Error when the read models are too far behind; the erasure must then be repeated
 */
export async function untilApplied(
  broker: Pick<Broker, 'bounds'>,
  topic: string,
  appliedUpTo: () => Promise<ReadonlyMap<number, number>>,
  patience_ms: number,
): Promise<void> {
  const ends = await broker.bounds(topic);
  const begun = performance.now();
  let moved_at = begun;
  let last = '';
  for (;;) {
    const places = await appliedUpTo();
    if ([...ends].every(([partition, { next }]) => (places.get(partition) ?? 0) >= next)) return;
    const at = JSON.stringify([...places]);
    const now = performance.now();
    if (at !== last) moved_at = now;
    last = at;
    if (now - moved_at > STANDSTILL_MS) return;
    if (now - begun > patience_ms)
      throw new Error(`${topic}: the read models are far behind; run the erasure again when they have caught up`);
    await pause(LOOK_MS);
  }
}
