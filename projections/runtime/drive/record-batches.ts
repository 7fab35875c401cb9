import type { BrokerRecord, RecordBatch } from '../../../engines/broker/port';
import type { RecordLog } from '../../../engines/records/port';
import type { Database } from '../../../engines/postgres/port';
import type { RecordProjection } from '../../../kernel/projection';
import { CheckpointLost, readCheckpoints } from '../checkpoint/checkpoints';
import type { Commits } from '../checkpoint/commits';
import { decodeStored, type DecodedBatch } from './decode';
import { splitIntoLanes } from './lanes';
import type { ConsumerRun } from './consumer-run';

export interface RecordBatchesDeps {
  db: Database;
  broker: { readonly id: string };
  records: Pick<RecordLog, 'decode'>;
}

interface Decoding {
  decoded: Promise<DecodedBatch>;
  /** Erasures per partition, read before the decoding began. */
  erasures: ReadonlyMap<number, number>;
}

/**
 * Decodes and commits the batches of one run. The next batch is decoded while the current one is written. A batch that
 * an erasure refused is decoded again, because the run itself is sound: only the decoded records are too old.
 */
export class RecordBatches {
  private readonly begun = new WeakMap<readonly BrokerRecord[], Decoding>();

  constructor(
    private readonly deps: RecordBatchesDeps,
    private readonly p: RecordProjection,
    private readonly commits: Commits,
    private readonly life: ConsumerRun,
  ) {}

  /** Begins to decode the records of a later batch. A failure is thrown when that batch is committed. */
  begin(records: readonly BrokerRecord[]): void {
    const decoding = this.decode(records);
    decoding.decoded.catch(() => undefined);
    this.begun.set(records, decoding);
  }

  /** @throws CheckpointLost when another worker has moved the checkpoint; database errors unchanged */
  async commit(batch: RecordBatch): Promise<void> {
    const { deps, commits, life } = this;
    const appended_at = batch.records.at(-1)?.appended_at ?? null;
    for (let rest = batch; ;) {
      const { decoded, erasures } = this.begun.get(rest.records) ?? this.decode(rest.records);
      const lanes = splitIntoLanes(rest, await decoded).map((lane) => ({ ...lane, erasures }));
      try {
        return await life.during(commits.commit(life, deps.broker.id, appended_at, lanes));
      } catch (error) {
        if (!(error instanceof CheckpointLost) || life.left) throw error;
        const refused = await life.during(this.refusedPart(rest, erasures));
        if (refused === undefined) throw error;
        rest = refused;
      }
    }
  }

  private decode(records: readonly BrokerRecord[]): Decoding {
    return { erasures: this.life.erasures, decoded: decodeStored(this.deps.records, records) };
  }

  /** The part of the batch that is not applied, when an erasure came after its decoding and no other worker did. */
  private async refusedPart(
    batch: RecordBatch,
    erasures: ReadonlyMap<number, number>,
  ): Promise<RecordBatch | undefined> {
    const { db, broker } = this.deps;
    const stored = await readCheckpoints(db, this.p);
    const progress: RecordBatch['progress'] = new Map();
    let refused = false;
    for (const [partition, { from, to }] of batch.progress) {
      const checkpoint = stored.get(partition);
      if (checkpoint?.engine !== broker.id || checkpoint.version !== this.p.version) return undefined;
      const at = Number(checkpoint.position);
      if (at < from || at > to) return undefined;
      if (checkpoint.erasures !== erasures.get(partition)) refused = true;
      if (at < to) progress.set(partition, { from: at, to });
    }
    if (!refused) return undefined;
    this.life.learnErasures(stored.values());
    const first = (partition: number) => progress.get(partition)?.from ?? Infinity;
    return { ...batch, records: batch.records.filter(({ partition, offset }) => offset >= first(partition)), progress };
  }
}
