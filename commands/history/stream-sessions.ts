import { z } from 'zod';
import { command, conflict, del, feature, notFound, permission } from '../../app/operation';
import { streamSession, streamSessionStream, type StreamSession } from '../../domain/history/stream-sessions';
import { sessionState } from '../../views/history/stream-sessions';

const DeleteReportResult = z.object({ success: z.boolean() }).meta({ id: 'DeleteStreamReportResult' });

/** Deletes the report of a finished session, with its shared links. Source: spec doc2 §4.2 "Stream history". */
export const deleteHistoryReport = command({
  name: 'deleteHistoryReport',
  summary: 'Deletes the report of a finished session, and ends its shared links',
  rest: del('/v1/history/reports/{id}'),
  guard: [feature('feature:stream_history'), permission('history:delete')],
  input: z.object({ id: z.uuid() }),
  output: DeleteReportResult,
  errors: { REPORT_NOT_FOUND: notFound('Report not found'), REPORT_LIVE: conflict('A live stream cannot be deleted') },
  async run({ input: { id }, caller, act, refuse }, { db }) {
    const precondition = ({ account_id }: StreamSession) => {
      if (account_id !== caller.account_id) throw refuse('REPORT_NOT_FOUND');
    };
    const session = await sessionState(db, caller.account_id, id);
    await act(
      streamSession,
      streamSessionStream(session?.id ?? id),
      { type: 'stream_session:delete' },
      { precondition },
    );
    return { success: true };
  },
});
