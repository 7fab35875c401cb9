import PDFDocument from 'pdfkit';
import type { DetailedReport } from '../../../views/history/stream-sessions';
import { fontRuns, LATIN, readFont } from './report-fonts';
import { durationText, printedFigures, printedLine } from './report-text';

type Document = InstanceType<typeof PDFDocument>;

const MARGIN = 48;
const WIDTH = 595.28 - 2 * MARGIN;
const INK = '#1f2430';
const FAINT = '#6b7280';
const LINES: readonly string[] = ['#7c3aed', '#16a34a', '#dc2626', '#2563eb'];
const TOP_ROWS = 15;
/** Longest drawn text of one line. */
const MAX_TEXT = 120;

export interface DrawnReport {
  report: DetailedReport;
  /** Viewers of each stream of the report, by time. */
  viewers: readonly (readonly number[])[];
}

/** Draws a report as a PDF: figures, charts of viewers and messages, and the lists. No picture is fetched. */
export function drawReport({ report, viewers }: DrawnReport): Promise<Uint8Array> {
  const { streams } = report;
  const title = printedLine(report.title ?? 'Stream report');
  const document = new PDFDocument({ size: 'A4', margin: MARGIN, info: { Title: title, CreationDate: new Date(0) } });
  const chunks: Buffer[] = [];
  document.on('data', (chunk: Buffer) => chunks.push(chunk));
  const ended = new Promise<Uint8Array>((resolve, reject) => {
    document.once('end', () => resolve(Buffer.concat(chunks)));
    document.once('error', reject);
  });
  const pen = new Pen(document);
  pen.text(title, { size: titleSize(title) });
  pen.text(`${report.started_at} to ${report.ended_at ?? 'now'} (UTC) · ${report.platforms.join(', ')}`, {
    size: 9,
    color: FAINT,
  });
  pen.gap(10);
  pen.figures(printedFigures(report));
  for (const [place, stream] of streams.entries()) {
    pen.heading(`${stream.platform}: ${printedLine(stream.title ?? 'untitled')}`);
    pen.text(`${stream.started_at}, ${durationText(stream.duration_secs)}`, { size: 9, color: FAINT });
    pen.figures(printedFigures(stream));
    const viewed = viewers[place]!;
    if (viewed.length > 0) pen.chart('Viewers', viewed, 'over the stream');
    pen.chart('Messages', stream.message_counts, `every ${stream.message_interval_secs / 60} min`);
    if (stream.categories.length > 0) {
      pen.list(
        'Categories',
        stream.categories.map((one): Row => [one.category, `${durationText(one.duration_secs)}, ${one.avg_viewers}`]),
      );
    }
  }
  pen.list(
    'Top chatters',
    report.top_chatters.map((one): Row => [one.display_name ?? 'unnamed', String(one.message_count)]),
  );
  pen.list(
    'Top emotes',
    report.top_emotes.map((one): Row => [one.alt, String(one.count)]),
  );
  pen.list(
    'Top GIFs',
    report.top_gifs.map((one): Row => [one.alt, String(one.count)]),
  );
  document.end();
  return ended;
}

type Row = readonly [label: string, value: string];

/** Draws from the top to the bottom of pages. */
class Pen {
  private readonly known = new Set<string>();
  private line_color = 0;

  constructor(private readonly document: Document) {}

  gap(points: number): void {
    this.document.y += points;
  }

  /** Draws a line, in as many fonts as it has scripts. */
  text(
    text: string,
    { size = 10, color = INK, at = MARGIN }: { size?: number; color?: string; at?: number } = {},
  ): void {
    this.room(size * 1.6);
    const { y } = this.document;
    let x = at;
    for (const { font, text: part } of fontRuns(shortened(text))) {
      this.font(font, size, color);
      const width = this.document.widthOfString(part);
      if (x + width > MARGIN + WIDTH) break;
      this.document.text(part, x, y, { lineBreak: false });
      x += width;
    }
    this.document.y = y + size * 1.6;
    this.document.x = MARGIN;
  }

  heading(text: string): void {
    this.room(60);
    this.gap(12);
    this.text(text, { size: 13 });
  }

  /** Figures in three columns. */
  figures(figures: readonly Row[]): void {
    for (let row = 0; row < figures.length; row += 3) {
      this.room(28);
      const top = this.document.y;
      figures.slice(row, row + 3).forEach(([label, value], column) => {
        const at = MARGIN + (column * WIDTH) / 3;
        this.document.y = top;
        this.text(label, { size: 8, color: FAINT, at });
        this.text(value, { size: 11, at });
      });
    }
  }

  /** A line chart of counts from 0 to the largest. */
  chart(label: string, counts: readonly number[], unit: string): void {
    const most = Math.max(...counts, 1);
    this.room(110);
    this.text(`${label}, ${unit}; at most ${most}`, { size: 8, color: FAINT });
    const [top, height] = [this.document.y, 70];
    const step = WIDTH / Math.max(1, counts.length - 1);
    this.document.rect(MARGIN, top, WIDTH, height).lineWidth(0.5).stroke('#d1d5db');
    counts.forEach((count, place) => {
      const [x, y] = [MARGIN + place * step, top + height - (count / most) * height];
      if (place === 0) this.document.moveTo(x, y);
      else this.document.lineTo(x, y);
    });
    this.document.lineWidth(1).stroke(LINES[this.line_color % LINES.length]!);
    this.line_color += 1;
    this.document.y = top + height + 8;
  }

  list(title: string, rows: readonly Row[]): void {
    if (rows.length === 0) return;
    this.heading(title);
    rows.slice(0, TOP_ROWS).forEach(([label, value], place) => {
      this.room(16);
      const top = this.document.y;
      this.text(`${place + 1}.  ${printedLine(label)}`);
      this.document.y = top;
      this.text(value, { at: MARGIN + WIDTH * 0.75 });
    });
  }

  private font(name: string, size: number, color: string): void {
    if (!this.known.has(name)) {
      this.document.registerFont(name, readFont(name));
      this.known.add(name);
    }
    this.document.font(name).fontSize(size).fillColor(color);
  }

  /** Begins a page where this one has less room. */
  private room(points: number): void {
    if (this.document.y + points <= this.document.page.height - MARGIN) return;
    this.document.addPage();
    this.document.font(this.known.has(LATIN) ? LATIN : 'Helvetica');
  }
}

/** Long titles are smaller, so that they have one line. */
const titleSize = (title: string): number => Math.max(10, Math.min(20, Math.floor(900 / title.length)));

const shortened = (text: string): string =>
  [...text].length > MAX_TEXT ? `${[...text].slice(0, MAX_TEXT - 1).join('')}…` : text;
