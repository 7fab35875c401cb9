import { z } from 'zod';
import { feature, get, permission, query, whole } from '../../app/operation';
import { PLATFORMS } from '../../domain/common/vendors';
import { notesAbout, PersonNote } from '../../views/chat/person-notes';

/** Notes of the account's moderators about somebody, newest first. */
export const platformUserNotes = query({
  name: 'platformUserNotes',
  summary: 'Notes about a person of the chats, newest first',
  rest: get('/v1/chat/users/{platform}/{platform_user_id}/notes'),
  pages: whole(),
  guard: [feature('feature:multichat'), permission('chat:notes')],
  input: z.object({ platform: z.enum(PLATFORMS), platform_user_id: z.string().min(1).max(100) }),
  output: PersonNote,
  run: ({ input, caller: { account_id } }, { db }) => notesAbout(db, { ...input, account_id }),
});
