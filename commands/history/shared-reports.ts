import { randomBytes } from 'node:crypto';
import { z } from 'zod';
import { actorOf } from '../../access/authentication/caller';
import { hashToken } from '../../access/authentication/keys';
import { command, conflict, del, feature, notFound, patch, permission, post } from '../../app/operation';
import {
  LINK_DURATIONS,
  MAX_LINKS,
  streamSession,
  streamSessionStream,
  type StreamSession,
} from '../../domain/history/stream-sessions';
import type { Settings } from '../../kernel/settings/settings';
import { hashPassword } from '../../services/history/shared-reports';
import { sessionState } from '../../views/history/stream-sessions';
import { linkOf, SharedLink } from '../../views/history/shared-reports';

const GUARD = [feature('feature:stream_history'), permission('history:share')] as const;
const LINK_NOT_FOUND = { LINK_NOT_FOUND: notFound('Shared link not found') };
const duration_secs = z
  .union(LINK_DURATIONS.map((seconds) => z.literal(seconds)))
  .describe('An hour, six hours, a day, a week or thirty days, in seconds');

/** The page of the web app, or the operation where no web app is configured. */
const linkAddress = (token: string, { hosts, public_url }: Settings): string =>
  hosts.web === undefined ? `${public_url ?? ''}/v1/history/shared/${token}` : `${hosts.web}/history/shared/${token}`;

const SharedLinkCreated = z
  .object({
    token: z.string().describe('It is never shown again'),
    url: z.string().describe('Address of the report; it is never shown again'),
    ...SharedLink.shape,
  })
  .meta({ id: 'StreamReportLinkCreated' });

/** Creates a link to a report and shows it once. Source: spec doc2 §2.14, §4.2; doc1 §8. */
export const createHistorySharedLink = command({
  name: 'createHistorySharedLink',
  summary: 'Creates a link to a report, for whoever has it, and shows it once',
  rest: post('/v1/history/reports/{id}/shared-links', { status: 201 }),
  per_minute: 60,
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: GUARD,
  input: z
    .object({
      id: z.uuid(),
      duration_secs,
      password: z.string().min(1).max(200).nullish(),
      allow_export: z.boolean().nullish().describe('Default false'),
    })
    .meta({ id: 'CreateStreamReportLinkInput' }),
  output: SharedLinkCreated,
  errors: {
    REPORT_NOT_FOUND: notFound('Report not found'),
    TOO_MANY_LINKS: conflict(`A report has at most ${MAX_LINKS} active links`),
    LINK_NOT_SHOWN: conflict('The link was created by an earlier request and is not shown again'),
  },
  async run({ input, caller, context, act, refuse, newId }, { db, settings }) {
    const { id, password, allow_export } = input;
    const session = await sessionState(db, caller.account_id, id);
    if (session === undefined) throw refuse('REPORT_NOT_FOUND');
    const token = randomBytes(32).toString('base64url');
    const link_id = newId('shared-link');
    const precondition = ({ account_id }: StreamSession) => {
      if (account_id !== caller.account_id) throw refuse('REPORT_NOT_FOUND');
    };
    const { events } = await act(
      streamSession,
      streamSessionStream(session.id),
      {
        type: 'stream_session:create_link',
        link_id,
        token_hash: hashToken(token),
        password_hash: password ? await hashPassword(password) : null,
        allow_export: allow_export ?? false,
        expires_at: new Date(context.now + input.duration_secs * 1000).toISOString(),
        created_by: actorOf(caller).user_id,
      },
      { precondition },
    );
    const created = events.find((event) => event.type === 'stream_session:link_created');
    if (created?.token_hash !== hashToken(token)) throw refuse('LINK_NOT_SHOWN');
    return {
      token,
      url: linkAddress(token, settings),
      id: link_id,
      expires_at: created.expires_at,
      allow_export: created.allow_export,
      has_password: created.password_hash !== null,
      created_at: created.created_at,
    };
  },
});

/** Extends an active link by a duration. Source: spec doc2 §3. */
export const extendHistorySharedLink = command({
  name: 'extendHistorySharedLink',
  summary: 'Lets an active shared link live longer, by a duration',
  rest: patch('/v1/history/shared-links/{id}'),
  guard: GUARD,
  input: z.object({ id: z.uuid(), duration_secs }),
  output: SharedLink,
  errors: { ...LINK_NOT_FOUND, LINK_ENDED: conflict('The link is not active') },
  async run({ input: { id: link_id, duration_secs: seconds }, caller, act, refuse }, { db }) {
    const link = await linkOf(db, caller.account_id, link_id);
    if (link === undefined) throw refuse('LINK_NOT_FOUND');
    if (link.is_revoked) throw refuse('LINK_ENDED');
    const extend = { type: 'stream_session:extend_link' as const, link_id, duration_secs: seconds };
    const { state } = await act(streamSession, streamSessionStream(link.session_id), extend);
    const { session_id: _session_id, is_revoked: _is_revoked, ...extended } = link;
    return { ...extended, expires_at: state.links[link_id]!.expires_at };
  },
});

/** Ends a link at once. */
export const revokeHistorySharedLink = command({
  name: 'revokeHistorySharedLink',
  summary: 'Revokes a shared link at once',
  rest: del('/v1/history/shared-links/{id}'),
  guard: GUARD,
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteStreamReportLinkResult' }),
  errors: LINK_NOT_FOUND,
  async run({ input: { id: link_id }, caller, act, refuse }, { db }) {
    const link = await linkOf(db, caller.account_id, link_id);
    if (link === undefined) throw refuse('LINK_NOT_FOUND');
    if (link.is_revoked) return { success: true };
    await act(streamSession, streamSessionStream(link.session_id), { type: 'stream_session:revoke_link', link_id });
    return { success: true };
  },
});
