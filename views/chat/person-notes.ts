import { z } from 'zod';
import type { NoteOf } from '../../domain/chat/person-notes';
import type { Queryable } from '../../engines/postgres/port';

/** A moderator's note about a person. */
export const PersonNote = z
  .object({
    id: z.uuid(),
    text: z.string(),
    created_by: z.uuid().nullable().describe('The member; null of a credential without one'),
    created_at: z.iso.datetime(),
    updated_at: z.iso.datetime(),
  })
  .meta({ id: 'PlatformUserNote' });
export type PersonNote = z.output<typeof PersonNote>;

const COLUMNS = 'id, text, created_by, created_at, updated_at';

/** Notes of an account about a person, newest first. */
export const notesAbout = (
  db: Pick<Queryable, 'query'>,
  { account_id, platform, platform_user_id }: NoteOf,
): Promise<PersonNote[]> =>
  db.query<PersonNote & Record<string, unknown>>(
    `select ${COLUMNS} from platform_user_notes
     where account_id = $1 and platform = $2 and platform_user_id = $3 order by created_at desc, id desc`,
    [account_id, platform, platform_user_id],
    'person-notes',
  );

/** A note of an account by its id; undefined without one. */
export async function noteOf(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  id: string,
): Promise<PersonNote | undefined> {
  const [note] = await db.query<PersonNote & Record<string, unknown>>(
    `select ${COLUMNS} from platform_user_notes where account_id = $1 and id = $2`,
    [account_id, id],
    'person-note',
  );
  return note;
}
