import { z } from 'zod';
import { firstParty, get, numbered, query, rowsOf } from '../../app/operation';

const dateTime = z.string().meta({ format: 'date-time' });

/** Address and browser of a session are not stored, because the specification names neither. */
const Session = z
  .object({
    id: z.uuid(),
    provider: z.string().nullable().describe('Null where an operator opened it'),
    active_account_id: z.uuid().nullable(),
    created_at: dateTime,
    refreshed_at: dateTime,
    expires_at: dateTime,
    current: z.boolean().describe('Whether it is the session that asks'),
  })
  .meta({ id: 'Session' });

/** Active sessions; one of a release before session events has a row but no provider. */
export const sessions = query({
  name: 'sessions',
  // Source: spec doc2 §4.2, §4.3.
  summary: "The caller's own sessions, newest first",
  rest: get('/v1/users/me/sessions'),
  pages: numbered('PaginatedSessionResult'),
  guard: [firstParty],
  input: z.object({}),
  output: Session,
  run: ({ caller, context, page }, { db }) =>
    rowsOf(db, page, Session, {
      from: `(
        select s.id, u.provider, m.account_id as active_account_id, s.created_at, s.refreshed_at, s.expires_at,
          s.id::text = $2 as current
        from sessions s left join user_sessions u on u.id = s.id
        left join account_members m on m.user_id = s.user_id and m.account_id = u.active_account_id
        where s.user_id = $1 and s.expires_at > to_timestamp($3 / 1000.0)
      ) own`,
      order: 'created_at desc, id desc',
      values: [caller.user_id, caller.credential_id, context.now],
    }),
});
