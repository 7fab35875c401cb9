import { Zip, ZipDeflate } from 'fflate';
import { rateLimited } from '../../../app/operation';
import type { Attachment, Chunks } from '../../../kernel/operations/transfers';
import {
  type DetailedReport,
  type SampleKey,
  type SampleRow,
  StreamReport,
} from '../../../views/history/stream-sessions';
import type { z } from 'zod';
import { SessionSummary } from '../../../domain/history/session-summary';
import { csvLine } from '../../../lib/text/csv';
import { reportPdf } from './report-pdf';
import { textOf } from './report-text';

/** A session's report as a file. Source: spec doc2 §4.2 "Stream history". */

export const REPORT_FORMATS = ['csv', 'txt', 'json', 'pdf'] as const;
export type ReportFormat = (typeof REPORT_FORMATS)[number];
const TYPES: Readonly<Record<ReportFormat, string>> = {
  csv: 'application/zip',
  txt: 'text/plain; charset=utf-8',
  json: 'application/json; charset=utf-8',
  pdf: 'application/pdf',
};
export const REPORT_TYPES: readonly string[] = Object.values(TYPES);
export const FILE_ERRORS = { TOO_MANY_FILES: rateLimited('Rate limit exceeded', { retry_after_seconds: 10 }) };
/** Version of the JSON file's shape. */
const SCHEMA_VERSION = 1;
const SAMPLE_ROWS = 5_000;

/** Samples behind a place; one more than asked for where there are more. */
export type ReadSamples = (after: z.output<typeof SampleKey> | null, limit: number) => Promise<SampleRow[]>;

/** Makes the file of a finished session; its samples are read as the file is sent. */
export async function reportFile(format: ReportFormat, report: DetailedReport, read: ReadSamples): Promise<Attachment> {
  const { id, started_at } = report;
  const extension = format === 'csv' ? 'zip' : format;
  return {
    filename: `stream-report-${started_at.slice(0, '2026-01-01'.length)}-${id}.${extension}`,
    content_type: TYPES[format],
    content: await contentOf(format, report, read),
  };
}

function contentOf(
  format: ReportFormat,
  report: DetailedReport,
  read: ReadSamples,
): Chunks | string | Promise<Uint8Array> {
  switch (format) {
    case 'csv':
      return zipped(report, read);
    case 'json':
      return encoded(jsonParts(report, read));
    case 'txt':
      return textOf(report);
    case 'pdf':
      return viewersOf(report, read).then((viewers) => reportPdf({ report, viewers }));
  }
}

async function* samplesFrom(read: ReadSamples): AsyncIterable<SampleRow> {
  let after: z.output<typeof SampleKey> | null = null;
  for (;;) {
    const rows = await read(after, SAMPLE_ROWS);
    const page = rows.slice(0, SAMPLE_ROWS);
    yield* page;
    const last = page.at(-1);
    if (last === undefined || rows.length <= SAMPLE_ROWS) return;
    after = [last.sampled_at, last.platform, last.broadcast_id];
  }
}

/** Points of a chart. */
const MAX_POINTS = 480;

/** Viewers of each stream of the report, by time; of a long stream the most of each interval. */
async function viewersOf({ streams }: DetailedReport, read: ReadSamples): Promise<number[][]> {
  const places = new Map(
    streams.flatMap(({ platform, broadcast_ids }, place) => broadcast_ids.map((id) => [`${platform}/${id}`, place])),
  );
  const viewers: number[][] = streams.map(() => []);
  for await (const { platform, broadcast_id, viewer_count } of samplesFrom(read)) {
    const place = places.get(`${platform}/${broadcast_id}`);
    if (place !== undefined) viewers[place]!.push(viewer_count);
  }
  return viewers.map((counts) => {
    const step = Math.ceil(counts.length / MAX_POINTS);
    const points = Math.ceil(counts.length / Math.max(1, step));
    return Array.from({ length: points }, (_, n) => Math.max(...counts.slice(n * step, (n + 1) * step)));
  });
}

async function* encoded(texts: AsyncIterable<string>): AsyncIterable<Uint8Array> {
  const encoder = new TextEncoder();
  for await (const text of texts) yield encoder.encode(text);
}

async function* jsonParts(report: DetailedReport, read: ReadSamples): AsyncIterable<string> {
  const shown = StreamReport.parse(report);
  const head = { schema_version: SCHEMA_VERSION, report: shown, platform_metrics: shown.streams };
  yield `${JSON.stringify(head).slice(0, -1)},"samples":[`;
  let separator = '';
  for await (const sample of samplesFrom(read)) {
    const { platform, sampled_at, viewer_count } = sample;
    yield `${separator}${JSON.stringify({ platform, sampled_at, viewer_count })}`;
    separator = ',';
  }
  yield ']}';
}

type Cell = string | number | boolean | null | readonly string[];
const cellOf = (cell: Cell): unknown => (Array.isArray(cell) ? cell.join('; ') : cell);
type Rows = Iterable<Record<string, Cell>> | AsyncIterable<Record<string, Cell>>;

/** A ZIP of CSV files, made as it is sent. */
async function* zipped(report: DetailedReport, read: ReadSamples): AsyncIterable<Uint8Array> {
  const made: Uint8Array[] = [];
  const zip = new Zip((error, chunk) => {
    if (error) throw error;
    made.push(chunk);
  });
  const encoder = new TextEncoder();
  for (const [name, columns, rows] of csvFiles(report, read)) {
    const file = new ZipDeflate(name);
    file.mtime = new Date(report.ended_at ?? report.started_at);
    zip.add(file);
    file.push(encoder.encode(csvLine(columns)));
    for await (const row of rows) {
      file.push(encoder.encode(csvLine(columns.map((column) => cellOf(row[column] ?? null)))));
      yield* made.splice(0);
    }
    file.push(new Uint8Array(0), true);
  }
  zip.end();
  yield* made;
}

const CHATTERS = ['platform', 'platform_user_id', 'display_name', 'message_count'];
const SAMPLES = ['platform', 'sampled_at', 'viewer_count'];
const SUMMARY = Object.keys(SessionSummary.shape);
const STREAM = Object.keys(StreamReport.shape.streams.element.shape).filter((name) => name !== 'shared_chat_sources');
const IMAGES = ['id', 'alt', 'provider', 'url', 'count'];

function csvFiles(report: DetailedReport, read: ReadSamples): [name: string, columns: readonly string[], rows: Rows][] {
  return [
    ['summary.csv', SUMMARY, [report] as unknown as Iterable<Record<string, Cell>>],
    ['streams.csv', STREAM, report.streams as unknown as Iterable<Record<string, Cell>>],
    ['timeseries.csv', SAMPLES, samplesFrom(read)],
    ['top_chatters.csv', CHATTERS, report.top_chatters],
    ['top_emotes.csv', IMAGES, report.top_emotes],
    ['top_gifs.csv', IMAGES, report.top_gifs],
  ];
}
