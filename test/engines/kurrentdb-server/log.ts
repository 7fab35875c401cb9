import { EventEmitter } from 'node:events';

/** An event as the server's log holds it. */
export interface LogRecord {
  id: string;
  stream: string;
  revision: number;
  /** Commit and prepare position are one: each event is its own record, as KurrentDB writes them since version 20. */
  position: bigint;
  type: string;
  json: boolean;
  data: Uint8Array;
  /** JSON text. */
  metadata: Uint8Array;
  created_ms: number;
}

export interface Proposed {
  id: string;
  type: string;
  json: boolean;
  data: Uint8Array;
  metadata: Uint8Array;
}

export interface Write {
  stream: string;
  /** -1 no stream, -2 any (also where none is named), -4 exists. */
  expected: number;
  events: Proposed[];
}

type Check = { decision: 'ok' | 'idempotent' | 'wrong' | 'corrupted'; current: number; first: number; last: number };

export type Outcome =
  | { result: 'success'; heads: number[]; position: bigint }
  | { result: 'wrong'; index: number; current: number }
  /** A repetition mixed with something new; `index` is the first write that is repeated or wrong. */
  | { result: 'mixed'; index: number; current: number };

/**
 * The log in memory, with the rules of the server's writer: expected revisions, and repetitions recognised by place (a
 * fixed revision) or by a cache of recent event ids ('any'), which a restart empties.
 */
export class ServerLog extends EventEmitter<{ record: [LogRecord] }> {
  readonly records: LogRecord[] = [];
  private readonly streams = new Map<string, LogRecord[]>();
  private recent = new Map<string, { stream: string; revision: number }>();
  private next_position = 1513n;

  constructor() {
    super();
    this.setMaxListeners(0);
  }

  stream(name: string): readonly LogRecord[] {
    return this.streams.get(name) ?? [];
  }

  /** What a restart of the server forgets. */
  forgetRecent(): void {
    this.recent = new Map();
  }

  /** All or nothing. */
  append(writes: readonly Write[]): Outcome {
    const checks = writes.map((write) => this.check(write));
    const first = checks.findIndex(({ decision }) => decision !== 'ok');
    const mixed = { result: 'mixed', index: first, current: checks[first]?.current ?? -1 } as const;
    if (checks.some(({ decision }) => decision === 'corrupted'))
      return writes.length === 1 ? { result: 'wrong', index: 0, current: checks[0]!.current } : mixed;
    const count = (decision: Check['decision']) => checks.filter((check) => check.decision === decision).length;
    if (count('idempotent') === writes.length) {
      const positions = writes.map(({ stream }, n) => this.stream(stream)[checks[n]!.last]!.position);
      const position = positions.reduce((a, b) => (a > b ? a : b));
      return { result: 'success', heads: checks.map(({ last }) => last), position };
    }
    if (count('idempotent') > 0) return mixed;
    const index = checks.findIndex(({ decision }) => decision === 'wrong');
    if (index !== -1) return { result: 'wrong', index, current: checks[index]!.current };
    return this.commit(writes);
  }

  private commit(writes: readonly Write[]): Outcome {
    const written: LogRecord[] = [];
    for (const { stream, events } of writes) {
      const records = this.streams.get(stream) ?? [];
      this.streams.set(stream, records);
      for (const event of events) {
        const record = {
          ...event,
          stream,
          revision: records.length,
          position: this.next_position,
          created_ms: Date.now(),
        };
        this.next_position += BigInt(
          140 + stream.length + event.type.length + event.data.length + event.metadata.length,
        );
        records.push(record);
        this.recent.set(event.id, { stream, revision: record.revision });
        written.push(record);
      }
    }
    this.records.push(...written);
    for (const record of written) this.emit('record', record);
    const heads = writes.map(({ stream }) => this.stream(stream).length - 1);
    return { result: 'success', heads, position: written[written.length - 1]!.position };
  }

  private check({ stream, expected, events }: Write): Check {
    const records = this.stream(stream);
    const current = records.length - 1;
    const found = (decision: Check['decision'], first = -1, last = -1): Check => ({ decision, current, first, last });
    if (expected === -4 && current < 0) return found('wrong');
    if (expected < -1) {
      let first = -1;
      let last = -1;
      for (const [n, { id }] of events.entries()) {
        const seen = this.recent.get(id);
        if (seen?.stream !== stream) return found(n === 0 ? 'ok' : 'corrupted');
        if (n === 0) first = seen.revision;
        last = seen.revision;
      }
      return found('idempotent', first, last);
    }
    if (expected > current) return found('wrong');
    if (expected === current) return found('ok');
    for (const [n, { id }] of events.entries()) {
      if (records[expected + 1 + n]?.id !== id) return found(n === 0 ? 'wrong' : 'corrupted');
    }
    return found('idempotent', expected + 1, expected + events.length);
  }
}

/** What one node shows of the log: everything, or what it had when its replication stopped. */
export class NodeLog extends EventEmitter<{ record: [LogRecord] }> {
  private held_at: number | undefined;

  constructor(private readonly log: ServerLog) {
    super();
    this.setMaxListeners(0);
    log.on('record', (record) => {
      if (this.held_at === undefined) this.emit('record', record);
    });
  }

  get records(): readonly LogRecord[] {
    return this.log.records.slice(0, this.held_at);
  }

  stream(name: string): readonly LogRecord[] {
    const records = this.log.stream(name);
    if (this.held_at === undefined) return records;
    const newest = this.records[this.held_at - 1]!.position;
    return records.filter(({ position }) => position <= newest);
  }

  /** From now on nothing new arrives here. */
  hold(): void {
    this.held_at ??= this.log.records.length;
  }

  /** What was missed arrives, and what comes. */
  release(): void {
    const missed = this.log.records.slice(this.held_at ?? Infinity);
    this.held_at = undefined;
    for (const record of missed) this.emit('record', record);
  }
}
