import { z } from 'zod';
import type { RequestContext } from '../../access/authentication/caller';
import { hashToken } from '../../access/authentication/keys';
import { networkBucket } from '../../access/limits/rate-buckets';
import {
  attachment,
  feature,
  forbidden,
  get,
  permission,
  publicAccess,
  query,
  rateLimited,
  type Refuse,
  unauthorized,
  whole,
} from '../../app/operation';
import type { Services } from '../../app/services';
import { opensLink } from '../../services/history/shared-reports';
import { type ActiveLink, activeLinkOf, linksOf, SharedLink } from '../../views/history/shared-reports';
import {
  reportOf,
  samplesOf,
  SessionSample,
  sessionState,
  StreamReport,
  thinnedSamplesOf,
} from '../../views/history/stream-sessions';
import { FILE_ERRORS, REPORT_FORMATS, REPORT_TYPES, reportFile } from './files/report-files';
import { EXPORT_LIVE, REPORT_NOT_FOUND } from './stream-sessions';

/** Calls a minute from one network, whoever calls. Source: spec doc1 §8. */
const CALLS = 120;
const NO_LINK = unauthorized('Invalid link or password');
const PASSWORD = { headers: { password: 'X-Share-Password' } };
const input = {
  token: z.string().min(1).max(200),
  password: z.string().max(200).nullish().describe('Of a protected link'),
};
const errors = { NO_LINK, TOO_MANY: rateLimited('Rate limit exceeded', { retry_after_seconds: 5 }) };

/** Links of a report, without their secrets. Source: spec doc2 §4.2, extra-facts §32. */
export const channelHistorySharedLinks = query({
  name: 'channelHistorySharedLinks',
  summary: 'Shared links of a report, without their secrets',
  rest: get('/v1/history/reports/{id}/shared-links'),
  pages: whole(),
  guard: [feature('feature:stream_history'), permission('history:share')],
  input: z.object({ id: z.uuid() }),
  output: SharedLink,
  errors: REPORT_NOT_FOUND,
  async run({ input: { id }, caller, refuse }, { db }) {
    const session = await sessionState(db, caller.account_id, id);
    if (session === undefined) throw refuse('REPORT_NOT_FOUND');
    return linksOf(db, session.id);
  },
});

const SharedReport = z
  .object({
    report: StreamReport,
    samples: z
      .array(SessionSample)
      .describe('Oldest first; at most 1,440 of a platform, each the maximum of its interval'),
    allow_export: z.boolean(),
  })
  .meta({ id: 'SharedStreamReport' });

/** A report by its link. All that is wrong with a link has one answer. Source: spec doc2 §4.2, ruling c61. */
export const sharedHistoryReport = query({
  name: 'sharedHistoryReport',
  summary: 'A report by its shared link',
  rest: get('/v1/history/shared/{token}', PASSWORD),
  guard: [publicAccess],
  input: z.object(input),
  output: SharedReport,
  errors,
  async run({ input: asked, context, refuse }, services) {
    const { db } = services;
    const link = await openLink(asked, context, services, refuse);
    const report = await reportOf(db, link.account_id, link.session_id);
    if (report === undefined) throw refuse('NO_LINK');
    return {
      report,
      samples: await thinnedSamplesOf(db, link.session_id),
      allow_export: link.allow_export,
    };
  },
});

/** A report as a file, by its link. */
export const sharedHistoryReportExport = query({
  name: 'sharedHistoryReportExport',
  summary: 'A report as a file, by its shared link',
  rest: get('/v1/history/shared/{token}/export', PASSWORD),
  graphql: null,
  sends: attachment(...REPORT_TYPES),
  guard: [publicAccess],
  input: z.object({ ...input, format: z.enum(REPORT_FORMATS) }),
  output: z.object({}),
  errors: { ...errors, ...EXPORT_LIVE, ...FILE_ERRORS, NO_EXPORT: forbidden('This link does not allow export') },
  async run({ input: asked, context, refuse }, services) {
    const { db } = services;
    const link = await openLink(asked, context, services, refuse);
    if (!link.allow_export) throw refuse('NO_EXPORT');
    const report = await reportOf(db, link.account_id, link.session_id);
    if (report === undefined) throw refuse('NO_LINK');
    if (report.status === 'live') throw refuse('EXPORT_LIVE');
    return reportFile(asked.format, report, (after, limit) =>
      samplesOf(db, link.session_id, { platform: null, after, limit }),
    );
  },
});

/** @throws DomainError NO_LINK, TOO_MANY; ApiError RATE_LIMIT_EXCEEDED */
async function openLink(
  { token, password }: { token: string; password?: string | null | undefined },
  { ip, units }: RequestContext,
  { db, features }: Services,
  refuse: Refuse<typeof errors>,
): Promise<ActiveLink> {
  await units?.take(networkBucket('shared-reports', ip, CALLS), 1);
  const link = await activeLinkOf(db, hashToken(token));
  const is_on = link !== undefined && (await features.enabled('feature:stream_history', link.account_id));
  const opens = await opensLink(is_on ? link.password_hash : undefined, password ?? null);
  if (opens === 'busy') throw refuse('TOO_MANY');
  if (!opens) throw refuse('NO_LINK');
  return link!;
}
