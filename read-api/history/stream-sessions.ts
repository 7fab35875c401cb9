import { z } from 'zod';
import {
  attachment,
  conflict,
  cursor,
  cut,
  feature,
  get,
  invalid,
  notFound,
  numbered,
  permission,
  query,
} from '../../app/operation';
import { SESSION_TYPES, SessionSummary } from '../../domain/history/session-summary';
import { readInstant, readRange } from '../../lib/time/instants';
import { platformOf, UNSUPPORTED } from '../../views/history/supported-platforms';
import {
  filterOptionsOf,
  reportOf,
  SampleKey,
  samplesOf,
  SESSION_SORTS,
  SessionSample,
  type SampleRow,
  MAX_POINTS,
  sessionsOf,
  sessionState,
  StreamReport,
} from '../../views/history/stream-sessions';
import { FILE_ERRORS, REPORT_FORMATS, REPORT_TYPES, reportFile } from './files/report-files';

const HISTORY = feature('feature:stream_history');
/** A page of a list: 10,000 pages of 100 reach a million sessions. */
const SESSION_PAGES = numbered('StreamSessionPage', { limit: 'per_page', pages: 10_000 });

export const REPORT_NOT_FOUND = { REPORT_NOT_FOUND: notFound('Report not found') };
export const EXPORT_LIVE = { EXPORT_LIVE: conflict('A live stream cannot be exported') };
const platform = z.string().max(50).nullish();

/** The account's sessions. Source: spec doc2 §4.2 "Stream history". */
export const channelHistory = query({
  name: 'channelHistory',
  summary: 'Sessions of streams with their figures, newest first',
  rest: get('/v1/history'),
  pages: SESSION_PAGES,
  guard: [HISTORY, permission('history:read')],
  input: z.object({
    from: readInstant('from').nullish().describe('ISO 8601: began not before this'),
    to: readInstant('to').nullish().describe('ISO 8601: began before this'),
    session_type: z.enum(SESSION_TYPES).nullish().describe('On one platform, or on several'),
    platform,
    search: z.string().max(500).nullish().describe('Part of a title, whatever its case'),
    category: z.string().max(500).nullish(),
    sort_by: z.enum(SESSION_SORTS).nullish().describe('Default `started_at`; sessions without the figure come last'),
    sort_dir: z.enum(['asc', 'desc']).nullish().describe('Default `desc`'),
  }),
  output: SessionSummary,
  errors: { ...UNSUPPORTED, ENDS_BEFORE_IT_BEGINS: invalid('from must not be after to') },
  run({ input, caller, page, refuse }, { db }) {
    const { from, to, reversed } = readRange(input);
    if (reversed) throw refuse('ENDS_BEFORE_IT_BEGINS');
    return sessionsOf(
      db,
      caller.account_id,
      {
        from,
        to,
        session_type: input.session_type ?? null,
        platform: input.platform ? platformOf(input.platform, refuse) : null,
        search: input.search || null,
        category: input.category ?? null,
        sort_by: input.sort_by ?? 'started_at',
        sort_dir: input.sort_dir ?? 'desc',
      },
      page,
    );
  },
});

/** Values that the list can be narrowed by. */
export const channelHistoryFilterOptions = query({
  name: 'channelHistoryFilterOptions',
  summary: 'Platforms and categories of the sessions, sorted',
  rest: get('/v1/history/filter-options'),
  guard: [HISTORY, permission('history:read')],
  input: z.object({}),
  output: z
    .object({ platforms: z.array(z.string()), categories: z.array(z.string()) })
    .meta({ id: 'StreamHistoryFilterOptions' }),
  run: ({ caller }, { db }) => filterOptionsOf(db, caller.account_id),
});

/** The report of a session. Source: spec doc2 §2.14. */
export const channelHistoryReport = query({
  name: 'channelHistoryReport',
  summary: 'The report of a session; of a live one the figures of now',
  rest: get('/v1/history/reports/{id}'),
  guard: [HISTORY, permission('history:read')],
  input: z.object({ id: z.uuid() }),
  output: StreamReport,
  errors: REPORT_NOT_FOUND,
  async run({ input, caller, refuse }, { db }) {
    const report = await reportOf(db, caller.account_id, input.id);
    if (report === undefined) throw refuse('REPORT_NOT_FOUND');
    return report;
  },
});

/** Raw samples of a session, each minute. */
export const channelHistoryReportStats = query({
  name: 'channelHistoryReportStats',
  summary: 'Samples of a session, taken once a minute, oldest first',
  rest: get('/v1/history/reports/{id}/stats'),
  pages: cursor(SampleKey, 'StreamSamplePage', { items: 500, most: MAX_POINTS }),
  guard: [HISTORY, permission('history:read')],
  input: z.object({ id: z.uuid(), platform }),
  output: SessionSample,
  errors: { ...UNSUPPORTED, ...REPORT_NOT_FOUND },
  async run({ input, caller, page, refuse }, { db }) {
    const wanted = input.platform ? platformOf(input.platform, refuse) : null;
    const session = await sessionState(db, caller.account_id, input.id);
    if (session === undefined) throw refuse('REPORT_NOT_FOUND');
    const { limit, after } = page;
    const rows = await samplesOf(db, session.id, { platform: wanted, after, limit });
    return cut(rows, limit, placeOf);
  },
});

const placeOf = ({ sampled_at, platform: of, broadcast_id }: SampleRow): z.output<typeof SampleKey> => [
  sampled_at,
  of,
  broadcast_id,
];

/** A report as a file. Source: spec doc2 §4.2 "Stream history". */
export const channelHistoryReportExport = query({
  name: 'channelHistoryReportExport',
  summary: 'The report of a finished session as a file',
  rest: get('/v1/history/reports/{id}/export'),
  graphql: null,
  sends: attachment(...REPORT_TYPES),
  guard: [HISTORY, permission('history:export')],
  input: z.object({ id: z.uuid(), format: z.enum(REPORT_FORMATS).describe('`csv` is a ZIP of CSV files') }),
  output: z.object({}),
  errors: { ...REPORT_NOT_FOUND, ...EXPORT_LIVE, ...FILE_ERRORS },
  async run({ input, caller, refuse }, { db }) {
    const report = await reportOf(db, caller.account_id, input.id);
    if (report === undefined) throw refuse('REPORT_NOT_FOUND');
    if (report.status === 'live') throw refuse('EXPORT_LIVE');
    return reportFile(input.format, report, (after, limit) =>
      samplesOf(db, report.id, { platform: null, after, limit }),
    );
  },
});
