import { createWriteStream } from 'node:fs';
import { Readable, type Writable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import { InvalidArgumentError, Option, type Command } from 'commander';
import { parseInstant } from '../lib/time/instants';
import { RawJson, stringify } from '../lib/json/raw-json';
import { TOPICS } from '../domain/common/records';
import type { StoredEvent } from '../engines/event-store/port';
import {
  type Place,
  placeOfEvent,
  replayAccount,
  replayEvents,
  type ReplayedRecord,
  replayTopic,
} from '../maintenance/archive/replay';
import { type ReducedRecord, reduceRecords } from '../maintenance/archive/reducer';
import { runCommand, type Connect, type FullContext } from './runtime/context';
import { progressBar } from './runtime/progress';

type Row = Record<string, unknown>;
const RECORD_COLUMNS = [
  'topic',
  'partition',
  'offset',
  'appended_at',
  'id',
  'account_id',
  'type',
  'platform',
  'external_id',
  'occurred_at',
  'received_at',
  'subject',
  'raw',
  'trace',
  'error',
];
const EVENT_COLUMNS = ['position', 'stream', 'revision', 'id', 'type', 'recorded_at', 'data', 'metadata'];

export const readPlace = (text: string): Place => {
  if (/^\d+$/.test(text)) return { number: Number(text) };
  const time = parseInstant(text);
  if (time === null)
    throw new InvalidArgumentError('must be an offset (a whole number) or a time like 2026-01-02T03:04:05Z.');
  return { time };
};
const number = (text: string): number => {
  if (!/^\d+$/.test(text)) throw new InvalidArgumentError('must be a whole number.');
  return Number(text);
};
export const collect = (text: string, list: string[]) => [...list, text];

export interface Options {
  from?: Place;
  to?: Place;
  partition?: number;
  account?: string;
  type: string[];
  duplicates?: boolean;
  format: 'ndjson' | 'csv';
  output?: string;
  reducer?: string;
  checkpoint?: string;
}

/** `lumio replay SOURCE`: prints a range of a topic or stream as lines for other tools. Design §7. */
export function register(program: Command, connect: Connect<FullContext>): void {
  program
    .command('replay')
    .argument('<source>', `a topic (${Object.values(TOPICS).join(', ')}) or a stream of domain events (account-…)`)
    .description(
      'write records of a topic, or events of a stream, as NDJSON or CSV; archive and log, each partition in its order',
    )
    .addOption(new Option('--from <place>', 'offset, revision or time, inclusive').argParser(readPlace))
    .addOption(
      new Option('--to <place>', 'offset, revision or time, exclusive; the end as it is now').argParser(readPlace),
    )
    .addOption(new Option('--partition <n>', 'only this partition of a topic').argParser(number))
    .option('--account <id>', 'only records, or with domain-events only events, of this account')
    .addOption(
      new Option('--type <type>', 'only of this type; may be given again').argParser(collect).default([], 'all'),
    )
    .option('--duplicates', 'also deliveries that came again and had no effect')
    .addOption(new Option('--format <format>', 'how').choices(['ndjson', 'csv']).default('ndjson'))
    .option('--output <file>', 'a file that must not exist yet, instead of standard output')
    .option('--reducer <file>', 'a module that exports reduce(state, record); prints the last state as JSON')
    .option('--checkpoint <file>', 'with --reducer: stores the state after each batch, and continues from there')
    .action((source: string, options: Options) =>
      runCommand(connect, async (context) => {
        const bar =
          process.stdout.isTTY && options.output === undefined
            ? undefined
            : progressBar('replay {bar} {percentage}% | {value}/{total} | {eta_formatted} left');
        try {
          const from_topic = source !== TOPICS.domain_events && (Object.values(TOPICS) as string[]).includes(source);
          const rows = from_topic
            ? recordRows(
                replayTopic(context, {
                  ...options,
                  topic: source,
                  account_id: options.account?.toLowerCase(),
                  types: options.type,
                  onProgress: ({ done, total }) => bar?.update(done, total),
                }),
              )
            : eventRows(eventsOf(context, source, options));
          if (options.reducer !== undefined) {
            process.stdout.write(`${await reduced(rows, options.reducer, options)}\n`);
            return;
          }
          const lines =
            options.format === 'csv' ? csv(rows, from_topic ? RECORD_COLUMNS : EVENT_COLUMNS) : ndjson(rows);
          await write(
            lines,
            options.output === undefined
              ? process.stdout
              : createWriteStream(options.output, { flags: 'wx', mode: 0o600 }),
          );
        } finally {
          bar?.stop();
        }
      }),
    );
}

/** Offset of a record, or place of a domain event. */
export const placeOfRow = (row: Row): number => Number(row['offset'] ?? placeOfEvent(String(row['position'])));

/** The last state of a reducer over the rows. */
function reduced(rows: AsyncIterable<Row[]>, file: string, { checkpoint }: Options): Promise<string> {
  async function* records(): AsyncGenerator<ReducedRecord[]> {
    for await (const batch of rows)
      yield batch.map((row) => ({
        source: String(row['partition'] ?? 'events'),
        place: placeOfRow(row),
        json: stringify(row),
      }));
  }
  return reduceRecords(records(), { file, checkpoint });
}

function eventsOf(context: FullContext, source: string, options: Options): AsyncGenerator<StoredEvent[]> {
  const range = { ...options, types: options.type };
  if (source !== TOPICS.domain_events) return replayEvents(context, { ...range, stream: source });
  if (options.account === undefined) return replayEvents(context, range);
  return accountEvents(context, { ...range, account: options.account.toLowerCase() });
}

async function* accountEvents(...of: Parameters<typeof replayAccount>): AsyncGenerator<StoredEvent[]> {
  for await (const batch of replayAccount(...of)) yield batch.map(({ event }) => event);
}

async function* recordRows(batches: AsyncIterable<ReplayedRecord[]>): AsyncGenerator<Row[]> {
  for await (const batch of batches)
    yield batch.map((record) => ('raw' in record ? { ...record, raw: new RawJson(record.raw) } : record));
}

async function* eventRows(batches: AsyncIterable<StoredEvent[]>): AsyncGenerator<Row[]> {
  for await (const batch of batches) yield batch.map((event) => ({ ...event }));
}

async function* ndjson(batches: AsyncIterable<Row[]>): AsyncGenerator<string> {
  for await (const rows of batches) yield rows.map((row) => `${oneLine(stringify(row))}\n`).join('');
}

/** Joins a vendor's multi-line payload: JSON has line feeds only between tokens, where a blank is equivalent. */
const oneLine = (json: string) => json.replace(/[\r\n]/g, ' ');

/** RFC 4180 with a header line. Objects are JSON text. */
async function* csv(batches: AsyncIterable<Row[]>, columns: readonly string[]): AsyncGenerator<string> {
  yield `${columns.join(',')}\r\n`;
  for await (const rows of batches)
    yield rows.map((row) => `${columns.map((column) => cell(row[column])).join(',')}\r\n`).join('');
}

function cell(value: unknown): string {
  if (value === null || value === undefined) return '';
  const text = value instanceof RawJson ? value.text : typeof value === 'object' ? stringify(value) : String(value);
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

/** Ends without an error when the reader closes the pipe (`| head`). */
async function write(lines: AsyncIterable<string>, to: Writable): Promise<void> {
  try {
    await pipeline(Readable.from(lines), to, { end: to !== process.stdout });
  } catch (error) {
    const code = (error as NodeJS.ErrnoException).code;
    if (code !== 'EPIPE' && code !== 'ERR_STREAM_PREMATURE_CLOSE') throw error;
  }
}
