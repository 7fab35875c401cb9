import type { Broker, BrokerRecord } from '../../engines/broker/port';
import type { Logger } from '../../engines/log/port';
import type { Database } from '../../engines/postgres/port';
import type { RecordLog } from '../../engines/records/port';
import type { RecordProjection } from '../../kernel/projection';
import { archivedBatches } from './catch-up';
import { openCheckpoints, readCheckpoints } from './checkpoints';
import type { Commits } from './commits';
import { DecodeAhead, decodeStored } from './decode';
import { lanesOf } from './lanes';
import type { Drive, Life } from './life';
import { openToDrive, type OpeningDeps, toRebuild } from './opening';

export interface RecordDriverDeps extends OpeningDeps {
  db: Database;
  broker: Broker;
  records: Pick<RecordLog, 'decode'>;
  log: Logger;
  batch_records: number;
}

/**
 * Consumes the projection's topic from its checkpoints on, first what only the archive still holds.
 * @throws EngineMismatch, Outdated, Superseded, RebuildNeeded
 */
export async function driveRecords(
  deps: RecordDriverDeps,
  p: RecordProjection,
  commits: Commits,
  life: Life,
): Promise<Drive> {
  const { broker, db, records, batch_records } = deps;
  const { topic } = p.from;
  // Versions are checked before the group is joined: a projection that needs a rebuild must hold no partition.
  const opened = await openToDrive(deps, p, commits.silence);
  for (const [partition, { earliest }] of await broker.bounds(topic)) {
    const at = Number(opened.get(partition)!.position);
    if (at < earliest) await catchUp(deps, p, commits, life, { partition, from: at, to: earliest });
  }
  const ahead = new DecodeAhead(records);
  return broker.consume({
    topic,
    group: `lumio-projection-${p.name}`,
    max_records: batch_records,
    start: async (partitions) => {
      const given = await openCheckpoints(db, p, broker.id, partitions, '0');
      commits.silence.learn((await readCheckpoints(db, p)).values());
      return new Map([...given].map(([partition, { position }]) => [partition, Number(position)]));
    },
    onAhead: (stored) => ahead.begin(stored),
    onBatch: async (batch) => {
      const lanes = lanesOf(batch, await ahead.decoded(batch.records));
      await life.during(commits.commit(life, broker.id, lastAppended(batch.records), lanes));
    },
  });
}

/** Applies what left the topic before this checkpoint had it: a restored database may be older than the archive. */
async function catchUp(
  { broker, records, batch_records, log, readArchived }: RecordDriverDeps,
  p: RecordProjection,
  commits: Commits,
  life: Life,
  { partition, from, to }: { partition: number; from: number; to: number },
): Promise<void> {
  const { topic } = p.from;
  log.warn({ projection: p.name, topic, partition, from, to }, 'reading on from the archive: the topic begins later');
  try {
    for await (const batch of archivedBatches(readArchived!, topic, partition, from, to, batch_records)) {
      if (life.over) return;
      const decoded = await decodeStored(records, batch.records);
      const part = { ...decoded, moves: [batch.move] };
      await life.during(commits.commit(life, broker.id, lastAppended(batch.records), [part]));
    }
  } catch (error) {
    throw toRebuild(p, error);
  }
}

const lastAppended = (records: readonly BrokerRecord[]) => records.at(-1)?.appended_at ?? null;
