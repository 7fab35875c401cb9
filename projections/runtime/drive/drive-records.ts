import type { Broker } from '../../../engines/broker/port';
import type { Logger } from '../../../engines/log/port';
import type { Database } from '../../../engines/postgres/port';
import type { RecordLog } from '../../../engines/records/port';
import type { RecordProjection } from '../../../kernel/projection';
import { archivedBatches } from '../checkpoint/catch-up';
import { openCheckpoints, readCheckpoints } from '../checkpoint/checkpoints';
import type { Commits } from '../checkpoint/commits';
import type { Subscription, ConsumerRun } from './consumer-run';
import { openToDrive, type OpeningDeps, rebuildRequired } from './checkpoint-init';
import { RecordBatches } from './record-batches';

export interface RecordDriverDeps extends OpeningDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'decode'>;
  log: Logger;
  batch_records: number;
}

/**
 * Consumes the projection's topic from its checkpoints on, after records that only the archive still holds.
 * @throws EngineMismatch, Outdated, Superseded, RebuildNeeded
 */
export async function driveRecords(
  deps: RecordDriverDeps,
  p: RecordProjection,
  commits: Commits,
  life: ConsumerRun,
): Promise<Subscription> {
  const { broker, db, batch_records } = deps;
  const { topic } = p.from;
  // Versions are checked before the group is joined, because a projection that needs a rebuild must hold no partition.
  const opened = await openToDrive(deps, p, commits.silence);
  life.learnErasures(opened.values());
  const batches = new RecordBatches(deps, p, commits, life);
  for (const [partition, { earliest }] of await broker.bounds(topic)) {
    const at = Number(opened.get(partition)!.position);
    if (at < earliest) await catchUp(deps, p, batches, life, { partition, from: at, to: earliest });
  }
  return broker.consume({
    topic,
    group: `lumio-projection-${p.name}`,
    max_records: batch_records,
    start: async (partitions) => {
      const checkpoints = await openCheckpoints(db, p, broker.id, partitions, '0');
      life.learnErasures(checkpoints.values());
      commits.silence.learn((await readCheckpoints(db, p)).values());
      return new Map([...checkpoints].map(([partition, { position }]) => [partition, Number(position)]));
    },
    onAhead: (stored) => batches.begin(stored),
    onBatch: (batch) => batches.commit(batch),
  });
}

/**
 * Applies records that left the topic before this checkpoint reached them: a restored database may be older than the
 * archive.
 */
async function catchUp(
  { batch_records, log, readArchived }: RecordDriverDeps,
  p: RecordProjection,
  batches: RecordBatches,
  life: ConsumerRun,
  { partition, from, to }: { partition: number; from: number; to: number },
): Promise<void> {
  const { topic } = p.from;
  log.warn({ projection: p.name, topic, partition, from, to }, 'reading on from the archive: the topic begins later');
  try {
    for await (const { records, move } of archivedBatches(readArchived!, topic, partition, from, to, batch_records)) {
      if (life.over) return;
      const progress = new Map([[partition, { from: Number(move.from), to: Number(move.to) }]]);
      await batches.commit({ topic, records, progress });
    }
  } catch (error) {
    throw rebuildRequired(p, error);
  }
}
