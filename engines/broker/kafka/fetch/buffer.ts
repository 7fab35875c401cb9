import { Signal } from '../../../../lib/async/signal';
import type { BrokerRecord, RecordBatch } from '../../port';

const MAX_BATCH_BYTES = 4 * 1024 * 1024;
const MAX_BUFFER_BYTES = 8 * 1024 * 1024;

interface Chunk {
  records: BrokerRecord[];
  /** First record not taken yet. */
  at: number;
  /** Offset after the chunk, which may lie beyond its last record. */
  next: number;
}

/** Fetched records that wait for their batch: bounded by two batches or 8 MiB, plus the records of one fetch. */
export class KafkaBuffer {
  /** Per open partition: the next offset to hand out. */
  readonly positions = new Map<number, number>();
  private readonly chunks = new Map<number, Chunk[]>();
  private records = 0;
  private bytes = 0;
  private turn = 0;
  private readonly room = new Signal();

  constructor(
    private readonly topic: string,
    private readonly max_records: number,
  ) {}

  get full(): boolean {
    return this.records >= 2 * this.max_records || this.bytes >= MAX_BUFFER_BYTES;
  }

  open(partition: number, from: number): void {
    this.positions.set(partition, from);
    this.chunks.set(partition, []);
  }

  add(partition: number, records: BrokerRecord[], next: number): void {
    const chunks = this.chunks.get(partition);
    if (!chunks) return;
    chunks.push({ records, at: 0, next });
    this.records += records.length;
    for (const { value } of records) this.bytes += value.length;
  }

  clear(): void {
    this.positions.clear();
    this.chunks.clear();
    this.records = 0;
    this.bytes = 0;
    this.room.raise();
  }

  /** The next batch, from all partitions, each one's records in order; every call begins with another partition. */
  take(): RecordBatch | undefined {
    if (this.records === 0) return undefined;
    const batch: RecordBatch = { topic: this.topic, records: [], progress: new Map() };
    const partitions = [...this.chunks.keys()];
    this.turn += 1;
    let bytes = 0;
    for (let n = 0; n < partitions.length; n += 1) {
      const partition = partitions[(n + this.turn) % partitions.length]!;
      const chunks = this.chunks.get(partition)!;
      const from = this.positions.get(partition)!;
      let to = from;
      for (let chunk = chunks[0]; chunk; chunk = chunks[0]) {
        let end = chunk.at;
        for (; end < chunk.records.length; end += 1) {
          const size = chunk.records[end]!.value.length;
          const full = batch.records.length > 0 && bytes + size > MAX_BATCH_BYTES;
          if (full || batch.records.length >= this.max_records) break;
          batch.records.push(chunk.records[end]!);
          bytes += size;
        }
        const whole = end === chunk.records.length;
        if (end > chunk.at) to = whole ? chunk.next : chunk.records[end - 1]!.offset + 1;
        chunk.at = end;
        if (!whole) break;
        chunks.shift();
      }
      if (to > from) {
        batch.progress.set(partition, { from, to });
        this.positions.set(partition, to);
      }
    }
    this.records -= batch.records.length;
    this.bytes -= bytes;
    if (!this.full) this.room.raise();
    return batch;
  }

  /** Resolves when there is room again, or after `ms`. */
  async drained(ms: number): Promise<void> {
    if (this.full) await this.room.wait(ms);
  }
}
