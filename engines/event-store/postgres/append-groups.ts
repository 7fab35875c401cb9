import type pg from 'pg';
import { appendOne, type OutcomeRow } from './append-one';
import { InvalidEvent, type EncodedAppend, type EncodedWrite } from '../checks';
import { RevisionConflict, type AppendResult, type Expected } from '../port';
import { Collector } from '../../../lib/async/collector';
import { retry } from '../../../lib/async/retry';
import { isPassing } from '../../../kernel/failures';

/** Bounds of one round trip; an append that is larger by itself travels alone. */
const MAX_APPENDS = 256;
const MAX_EVENTS = 4096;
const MAX_SIZE = 2 * 1024 * 1024;
/** Appends to one stream that follow each other in one group; each costs a statement of its own. */
const MAX_WAVES = 64;

const APPEND =
  'select write_no, status, revision::float8, at_position::text from append_domain_events($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13)';

export interface GroupOptions {
  pool: pg.Pool;
  /** Milliseconds without an answer after which a connection is given up (a half-open link never answers). */
  timeout_ms: number;
  /** Milliseconds for which a group whose outcome is unknown is sent again. */
  retry_for_ms: number;
  onStored(): void;
}

/** An append and its index in the group. */
interface Placed {
  append: EncodedAppend;
  place: number;
}

/**
 * Collects the appends of one process: appends that arrive in one turn of the event loop, or while a group is in
 * flight, share one round trip and one commit. One group is in flight at a time, because the database stores groups one
 * after the other anyway.
 */
export class AppendGroups {
  private readonly collector: Collector<EncodedAppend, AppendResult, Placed[][]>;

  constructor(private readonly options: GroupOptions) {
    this.collector = new Collector({ take: inWaves, send: (waves) => this.store(waves) });
  }

  append(append: EncodedAppend): Promise<AppendResult> {
    return this.collector.add(append);
  }

  /** Resolves when every append accepted so far has its outcome. */
  idle(): Promise<void> {
    return this.collector.idle();
  }

  /** Stores the group; outcomes are in the order of `place`. */
  private async store(waves: Placed[][]): Promise<(AppendResult | Error)[]> {
    const group = waves.flat();
    const outcomes: (AppendResult | Error)[] = [];
    let rows: OutcomeRow[];
    try {
      rows = await this.send(waves);
    } catch (error) {
      if (group.length === 1 || isPassing(error)) throw error;
      // One append cannot be stored, and the whole statement was rolled back: sending each alone isolates that append.
      for (const { append, place } of group) {
        const alone = this.store([[{ append, place: 0 }]]);
        outcomes[place] = await alone.then(([outcome]) => outcome!).catch((reason: Error) => reason);
      }
      return outcomes;
    }
    const by_write: OutcomeRow[] = [];
    for (const row of rows) by_write[row.write_no - 1] = row;
    let stored = false;
    let first_write = 0;
    for (const { append, place } of group) {
      const own = by_write.slice(first_write, (first_write += append.writes.length));
      outcomes[place] = judge(append, own);
      stored ||= own[0]!.status === 0;
    }
    if (stored) this.options.onStored();
    return outcomes;
  }

  /** Sends a group until its outcome is known. Repeating is harmless: stored ids return their first result. */
  private async send(waves: Placed[][]): Promise<OutcomeRow[]> {
    const { pool, timeout_ms: query_timeout, retry_for_ms } = this.options;
    const only = alone(waves);
    const query = { name: 'append-domain-events', text: APPEND, values: only ? [] : parameters(waves), query_timeout };
    const send = async () =>
      only
        ? [await appendOne(pool, only.writes, only.metadata, query_timeout)]
        : (await pool.query<OutcomeRow>(query)).rows;
    return retry(send, { first_ms: 20, most_ms: 1000, within_ms: retry_for_ms, passing: isPassing });
  }
}

/**
 * The next group as waves: within a wave, no stream and no event id occurs twice. Appends to a stream keep their order.
 */
function inWaves(waiting: readonly EncodedAppend[]): { count: number; group: Placed[][] } {
  const waves: Placed[][] = [];
  const last_wave = new Map<string, number>();
  let count = 0;
  let events = 0;
  let size = 0;
  for (const append of waiting) {
    events += append.event_count;
    size += append.size;
    if (count > 0 && (count === MAX_APPENDS || events > MAX_EVENTS || size > MAX_SIZE)) break;
    let wave = 0;
    for (const { stream, ids } of append.writes)
      wave = Math.max(wave, last_wave.get(stream) ?? 0, last_wave.get(lastOf(ids)) ?? 0);
    if (wave === MAX_WAVES) break;
    (waves[wave] ??= []).push({ append, place: count });
    for (const { stream, ids } of append.writes) last_wave.set(stream, wave + 1).set(lastOf(ids), wave + 1);
    count += 1;
  }
  return { count, group: waves };
}

function judge(append: EncodedAppend, rows: OutcomeRow[]): AppendResult | Error {
  if (rows[0]!.status === 1) {
    const index = append.writes.findIndex((write, n) => write.expected !== -2 && write.expected !== rows[n]!.revision);
    const { stream, expected } = append.writes[index]!;
    const found = rows[index]!.revision;
    return new RevisionConflict(stream, asExpected(expected), found === -1 ? null : found);
  }
  if (rows[0]!.status === 3)
    return new InvalidEvent(
      `an event id of the append to ${append.writes.map(({ stream }) => stream).join(', ')} belongs to another append`,
    );
  const revisions: Record<string, number> = {};
  append.writes.forEach((write, n) => (revisions[write.stream] = rows[n]!.revision));
  return { position: rows[rows.length - 1]!.at_position!, revisions };
}

const asExpected = (expected: number): Expected => (expected === -2 ? 'any' : expected === -1 ? 'none' : expected);
const lastOf = (ids: string[]): string => ids[ids.length - 1]!;

/** The append of a group with a single event; undefined for any other group. */
function alone(waves: Placed[][]): (EncodedAppend & { writes: [EncodedWrite] }) | undefined {
  const [{ append }] = waves[0] as [Placed];
  const alone = waves.length === 1 && waves[0]!.length === 1 && append.event_count === 1;
  return alone ? (append as EncodedAppend & { writes: [EncodedWrite] }) : undefined;
}

/**
 * The function's arguments: text lists joined by newlines, which no encoded text contains; numbers as array literals,
 * which are cheaper than the driver's.
 */
function parameters(waves: Placed[][]): string[] {
  const metadata: string[] = [];
  const wave_writes: number[] = [];
  const wave_events: number[] = [];
  const write = {
    append: [] as number[],
    stream: [] as string[],
    expected: [] as number[],
    size: [] as number[],
    last: [] as string[],
  };
  const event = {
    write: [] as number[],
    index: [] as number[],
    id: [] as string[],
    type: [] as string[],
    data: [] as string[],
  };
  for (const wave of waves) {
    for (const { append } of wave) {
      const append_no = metadata.push(append.metadata);
      for (const { stream, expected, ids, types, data } of append.writes) {
        const write_no = write.append.push(append_no);
        write.stream.push(stream);
        write.expected.push(expected);
        write.size.push(ids.length);
        write.last.push(lastOf(ids));
        for (let n = 0; n < ids.length; n += 1) {
          event.write.push(write_no);
          event.index.push(n + 1);
          event.id.push(ids[n]!);
          event.type.push(types[n]!);
          event.data.push(data[n]!);
        }
      }
    }
    wave_writes.push(write.append.length);
    wave_events.push(event.write.length);
  }
  const numbers = (list: number[]) => `{${list.join(',')}}`;
  const lines = (list: string[]) => list.join('\n');
  return [
    lines(metadata),
    numbers(wave_writes),
    numbers(wave_events),
    numbers(write.append),
    lines(write.stream),
    numbers(write.expected),
    numbers(write.size),
    lines(write.last),
    numbers(event.write),
    numbers(event.index),
    lines(event.id),
    lines(event.type),
    lines(event.data),
  ];
}
