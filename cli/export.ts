import { type Command, Option } from 'commander';
import { z } from 'zod';
import { TOPICS } from '../domain/common/records';
import type { StoredEvent } from '../engines/event-store/port';
import { type ExportBatch, type ExportProgress, readProgress, writeExport } from '../maintenance/archive/export-file';
import { type Column, columns } from '../maintenance/archive/files/columns';
import { type Encoder, EXPORT_FORMATS, type ExportFormat, openEncoder } from '../maintenance/archive/files/encoder';
import {
  type Persons,
  PERSONS,
  recordColumns,
  recordRow,
  TOPIC_OF,
  type TopicSource,
} from '../maintenance/archive/files/record-columns';
import { AUDIT_COLUMNS, auditRows, SESSION_COLUMNS, sessionRows } from '../maintenance/archive/files/read-model-rows';
import { type Place, replayAccount, replayEvents, replayTopic } from '../maintenance/archive/replay';
import { collect, type Options as ReplayOptions, placeOfRow, readPlace } from './replay';
import { runCommand, type Connect, type FullContext } from './runtime/context';

type Row = Record<string, unknown>;
interface Options extends Pick<ReplayOptions, 'from' | 'to' | 'account' | 'type'> {
  format: ExportFormat;
  output: string;
  resume?: boolean;
  persons: Persons;
}

const SOURCES = [...Object.keys(TOPIC_OF), TOPICS.domain_events, 'sessions', 'audit'];

const EVENT = [
  ...columns('text', 'position', 'stream'),
  ...columns('integer', 'revision'),
  ...columns('text', 'id', 'type'),
  ...columns('time', 'recorded_at'),
];

const AccountPlaceText = z.object({ place: z.int(), stream: z.string(), revision: z.int() });

const isTopicSource = (source: string): source is TopicSource => source in TOPIC_OF;

/** Columns of a source; names, texts and raw data only in clear. */
function columnsOf(source: string, persons: Persons): Column[] {
  const clear = (...names: string[]) => (persons === 'clear' ? columns('text', ...names) : []);
  if (source === 'sessions') return [...SESSION_COLUMNS, ...clear('title')];
  if (source === 'audit') return [...AUDIT_COLUMNS, ...clear('before', 'after')];
  if (isTopicSource(source)) return recordColumns(source, persons);
  return [...EVENT, ...clear('data', 'metadata')];
}

/** `lumio export SOURCE`: writes records or events to a file that a killed export continues. */
export function register(program: Command, connect: Connect<FullContext>): void {
  program
    .command('export')
    .argument('<source>', `what: ${SOURCES.join(', ')}`)
    .description('write records or domain events to a file for analysis; persons by their hashes, without texts')
    .requiredOption('--output <file>', 'a file that must not exist yet')
    .option('--resume', 'cut a partial --output to its last whole batch, and continue')
    .addOption(new Option('--from <place>', 'offset, position or time, inclusive').argParser(readPlace))
    .addOption(new Option('--to <place>', 'offset, position or time, exclusive').argParser(readPlace))
    .option('--account <id>', 'only of this account')
    .addOption(new Option('--type <type>', 'only of this type; repeatable').argParser(collect).default([], 'all'))
    .addOption(new Option('--format <format>', 'how').choices(EXPORT_FORMATS).default('ndjson'))
    .addOption(
      new Option('--persons <form>', '`clear` adds names, texts and raw data').choices(PERSONS).default('hash'),
    )
    .action((source: string, options: Options) =>
      runCommand(connect, async (context) => {
        if (!SOURCES.includes(source)) throw new Error(`the source must be one of ${SOURCES.join(', ')}`);
        const { output, format, persons } = options;
        const begun_with = optionsText(source, options);
        const progress = options.resume === true ? await readProgress(output, begun_with) : null;
        const written_before = progress !== null && progress.bytes > 0 ? progress : null;
        const encoder = await openEncoder(format, columnsOf(source, persons), written_before);
        await writeExport(output, {
          head: { data: encoder.head, state: encoder.state() },
          batches: written(rowsOf(context, source, options, written_before), encoder, written_before),
          tail: () => encoder.tail(),
          options: begun_with,
          progress,
        });
      }),
    );
}

/** The options by which the rows of a file and their form are decided. */
const optionsText = (source: string, { from, to, account, type, format, persons }: Options): string =>
  JSON.stringify({ source, format, persons, from, to, account, type: [...type].sort() });

/** Batches in the file's format, without the rows that the output holds already. */
async function* written(
  rows: AsyncIterable<Row[]>,
  encoder: Encoder,
  progress: ExportProgress | null,
): AsyncGenerator<ExportBatch> {
  const { least_rows = 1 } = encoder;
  let fresh: Row[] = [];
  let places = new Map<string, number | string>();
  const batch = (): ExportBatch => {
    const made = { data: encoder.rows(fresh), places, state: encoder.state() };
    fresh = [];
    places = new Map();
    return made;
  };
  for await (const some of rows) {
    for (const row of some) {
      if (typeof row['place'] === 'string') {
        places.set('rows', row['place']);
      } else {
        const name = String(row['partition'] ?? 'events');
        const place = placeOfRow(row);
        if (place < Number(progress?.places[name] ?? 0)) continue;
        places.set(name, place + 1);
      }
      fresh.push(row);
    }
    if (fresh.length >= least_rows) yield batch();
  }
  if (fresh.length > 0) yield batch();
}

async function* rowsOf(
  context: FullContext,
  source: string,
  options: Options,
  progress: ExportProgress | null,
): AsyncGenerator<Row[]> {
  const { from, to, type: types } = options;
  const account = options.account?.toLowerCase();
  if (source === 'sessions' || source === 'audit') {
    const after = progress?.places['rows'];
    const of = {
      ...{ account: account ?? null, from: timeOf(from), to: timeOf(to), types },
      after: after === undefined ? null : String(after),
    };
    yield* source === 'sessions' ? sessionRows(context.db, of) : auditRows(context.db, of);
    return;
  }
  const range = { ...(from && { from }), ...(to && { to }), types };
  if (isTopicSource(source)) {
    const topic = TOPIC_OF[source];
    const of = { ...range, topic, ...(account !== undefined && { account_id: account }) };
    for await (const batch of replayTopic(context, of)) yield batch.map((record) => recordRow(source, record));
    return;
  }
  if (account !== undefined) {
    const text = progress?.places['rows'];
    const after = text === undefined ? {} : { after: AccountPlaceText.parse(JSON.parse(String(text))) };
    for await (const batch of replayAccount(context, { ...range, account, ...after }))
      yield batch.map(({ event, place }) => ({ ...event, place: JSON.stringify(place) }));
    return;
  }
  for await (const batch of replayEvents(context, range)) yield batch.map((event: StoredEvent) => ({ ...event }));
}

/** @throws Error for an offset */
function timeOf(place: Place | undefined): string | null {
  if (place === undefined) return null;
  if ('number' in place) throw new Error('--from and --to of this source are times');
  return place.time;
}
