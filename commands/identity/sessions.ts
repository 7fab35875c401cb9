import { z } from 'zod';
import { command, del, firstParty, notFound } from '../../app/operation';
import { endSession, endSessions } from '../../services/identity/session-revocation';
import { session, sessionStream, type Session } from '../../domain/identity/sessions';

const Ended = z.object({ success: z.boolean() }).meta({ id: 'SessionEnded' });

export const deleteSession = command({
  name: 'deleteSession',
  // Source: spec doc2 §4.2, §4.3.
  summary: "Ends one of the caller's own sessions",
  rest: del('/v1/users/me/sessions/{id}'),
  guard: [firstParty],
  input: z.object({ id: z.uuid() }),
  output: Ended,
  errors: { SESSION_NOT_FOUND: notFound('Session not found') },
  async run({ input: { id }, caller: { user_id }, act, refuse }, services) {
    const [living] = await services.db.query(
      'select 1 from sessions where id = $1 and user_id = $2',
      [id, user_id],
      'session-own',
    );
    if (living !== undefined) {
      await endSession(act, services, id, 'revoked');
      return { success: true };
    }
    // Not checked for a repetition, which would otherwise report the session that its first attempt ended as missing.
    const precondition = (known: Session | null) =>
      (known?.user_id !== user_id || known.status === 'ended') && refuse('SESSION_NOT_FOUND');
    await act(session, sessionStream(id), { type: 'session:end', reason: 'revoked' }, { precondition });
    await services.access.announce({ credential_id: id });
    return { success: true };
  },
});

export const deleteAllOtherSessions = command({
  name: 'deleteAllOtherSessions',
  // Source: spec doc2 §4.2, §4.3.
  summary: "Ends the caller's own sessions but the one that asks",
  rest: del('/v1/users/me/sessions'),
  guard: [firstParty],
  input: z.object({}),
  output: Ended,
  async run({ caller: { kind, user_id, credential_id }, act }, services) {
    await endSessions(act, services, { user_id, except: kind === 'jwt' ? credential_id : null }, 'revoked');
    return { success: true };
  },
});
