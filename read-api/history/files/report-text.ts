import type { ShownFigures } from '../../../domain/history/session-summary';
import type { StreamReport } from '../../../views/history/stream-sessions';

/** Reports as plain text. */

const NUMBER_FORMAT = new Intl.NumberFormat('en-US');
const number = (value: number | null): string => (value === null ? 'not reported' : NUMBER_FORMAT.format(value));
/** A text without line breaks and control characters. */
export const printedLine = (text: string): string => text.replaceAll(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ');

/** Seconds as `3h 05m`. */
export const durationText = (seconds: number): string =>
  `${Math.floor(seconds / 3600)}h ${String(Math.floor((seconds % 3600) / 60)).padStart(2, '0')}m`;

/** Figures by their labels, as they are printed. */
export const printedFigures = (figures: ShownFigures & { duration_secs: number }): [label: string, value: string][] => [
  ['Duration', durationText(figures.duration_secs)],
  ['Peak viewers', number(figures.peak_viewers)],
  ['Average viewers', number(figures.avg_viewers)],
  ['Hours watched', number(figures.hours_watched)],
  ['Messages', number(figures.total_messages)],
  ['Unique chatters', number(figures.unique_chatters)],
  ['New followers', number(figures.new_followers)],
  ['New paid subscriptions', number(figures.new_paid_subs)],
  ['Gifted subscriptions', number(figures.gifted_subs)],
  ['Emotes', number(figures.emote_count)],
  ['GIFs', number(figures.gif_count)],
];

export function textOf(report: StreamReport): string {
  const { streams, top_chatters, top_emotes } = report;
  const out = [
    printedLine(report.title ?? 'Stream report'),
    `${report.started_at} to ${report.ended_at ?? 'now'} (UTC), ${report.platforms.join(', ')}`,
    '',
    ...printedFigures(report).map(([label, value]) => `${label}: ${value}`),
  ];
  for (const stream of streams) {
    out.push('', `${stream.platform}: ${printedLine(stream.title ?? 'untitled')}`);
    out.push(...printedFigures(stream).map(([label, value]) => `  ${label}: ${value}`));
  }
  const list = (title: string, rows: readonly string[]) => {
    if (rows.length > 0) out.push('', title, ...rows.map((row, place) => `  ${place + 1}. ${row}`));
  };
  list(
    'Top chatters',
    top_chatters.map((one) => `${printedLine(one.display_name ?? 'unnamed')}: ${number(one.message_count)}`),
  );
  list(
    'Top emotes',
    top_emotes.map((one) => `${printedLine(one.alt)}: ${number(one.count)}`),
  );
  return `${out.join('\n')}\n`;
}
