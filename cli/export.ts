import { type Command, Option } from 'commander';
import { TOPICS } from '../domain/common/records';
import { readStreamSample } from '../domain/history/stream-samples';
import type { StoredEvent } from '../engines/event-store/port';
import { RawJson, stringify } from '../lib/json/raw-json';
import { csvLine } from '../lib/text/csv';
import { type ExportBatch, type ExportProgress, readProgress, writeExport } from '../maintenance/archive/export-file';
import { replayAccount, replayEvents, type ReplayedRecord, replayTopic } from '../maintenance/archive/replay';
import { collect, type Options as ReplayOptions, readPlace } from './replay';
import { runCommand, type Connect, type FullContext } from './runtime/context';

type Row = Record<string, unknown>;
type Persons = 'hash' | 'clear';
interface Options extends Pick<ReplayOptions, 'from' | 'to' | 'account' | 'type' | 'format'> {
  output: string;
  resume?: boolean;
  persons: Persons;
}

const TOPIC_OF = {
  events: TOPICS.platform_events,
  chat: TOPICS.chat_events,
  samples: TOPICS.stream_samples,
} as const;
type TopicSource = keyof typeof TOPIC_OF;
const SOURCES = [...Object.keys(TOPIC_OF), TOPICS.domain_events];

const PLACE = ['partition', 'offset', 'appended_at', 'id', 'account_id', 'type', 'platform'];
const RECORD = [...PLACE, 'external_id', 'occurred_at', 'received_at', 'person'];
const SAMPLE = [...PLACE, 'occurred_at', 'broadcast_id', 'viewer_count', 'follower_count', 'category'];
const EVENT = ['position', 'stream', 'revision', 'id', 'type', 'recorded_at'];

/** Columns of a source; names, texts and raw data only in clear. */
function columnsOf(source: string, persons: Persons): string[] {
  const is_clear = persons === 'clear';
  if (source === 'samples') return [...SAMPLE, ...(is_clear ? ['title'] : [])];
  if (source in TOPIC_OF) return [...RECORD, ...(is_clear ? ['raw'] : [])];
  return [...EVENT, ...(is_clear ? ['data', 'metadata'] : [])];
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
    .addOption(new Option('--format <format>', 'how').choices(['ndjson', 'csv']).default('ndjson'))
    .addOption(
      new Option('--persons <form>', '`clear` adds names, texts and raw data')
        .choices(['hash', 'clear'])
        .default('hash'),
    )
    .action((source: string, options: Options) =>
      runCommand(connect, async (context) => {
        if (!SOURCES.includes(source)) throw new Error(`the source must be one of ${SOURCES.join(', ')}`);
        const { output, format, persons } = options;
        const progress = options.resume === true ? await readProgress(output) : null;
        const columns = columnsOf(source, persons);
        await writeExport(output, {
          head: format === 'csv' ? csvLine(columns) : '',
          batches: written(rowsOf(context, source, options), { columns, format, progress }),
          progress,
        });
      }),
    );
}

/** Batches as text, without the rows that the output holds already. */
async function* written(
  rows: AsyncIterable<Row[]>,
  { columns, format, progress }: { columns: string[]; format: Options['format']; progress: ExportProgress | null },
): AsyncGenerator<ExportBatch> {
  const line = (row: Row): string => {
    const values = columns.map((column) => row[column] ?? null);
    if (format === 'csv') return csvLine(values);
    const shown = Object.fromEntries(columns.map((column, at) => [column, values[at]]));
    // JSON has line feeds only between tokens.
    return `${stringify(shown).replace(/[\r\n]/g, ' ')}\n`;
  };
  for await (const batch of rows) {
    const places = new Map<string, number>();
    let text = '';
    for (const row of batch) {
      const name = String(row['partition'] ?? 'events');
      const place = Number(row['offset'] ?? row['position']);
      if (place < (progress?.places[name] ?? 0)) continue;
      places.set(name, place + 1);
      text += line(row);
    }
    if (text !== '') yield { text, places };
  }
}

async function* rowsOf(context: FullContext, source: string, options: Options): AsyncGenerator<Row[]> {
  const { from, to, type: types } = options;
  const account = options.account?.toLowerCase();
  const range = { ...(from && { from }), ...(to && { to }), types };
  if (source in TOPIC_OF) {
    const topic = TOPIC_OF[source as TopicSource];
    const of = { ...range, topic, ...(account !== undefined && { account_id: account }) };
    for await (const batch of replayTopic(context, of)) yield batch.map((record) => recordRow(source, record));
    return;
  }
  const batches = account === undefined ? replayEvents(context, range) : replayAccount(context, { ...range, account });
  for await (const batch of batches) yield batch.map((event: StoredEvent) => ({ ...event }));
}

function recordRow(source: string, record: ReplayedRecord): Row {
  if (!('raw' in record)) return { ...record };
  // Records of older releases name the person in clear.
  const person = record.subject?.includes(':') === true ? null : record.subject;
  const row = { ...record, person, raw: new RawJson(record.raw) };
  return source === 'samples' ? { ...row, ...readStreamSample(record.raw) } : row;
}
