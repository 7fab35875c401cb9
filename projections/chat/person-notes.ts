import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { PERSON_NOTE_EVENTS } from '../../domain/chat/person-notes';
import { sql } from '../../kernel/sql';
import { all, eventProjection, pick } from '../runtime/drive/handlers';

/** Notes about people of the chats; an erased person has none. */
export const personNotes = eventProjection({
  name: 'person-notes',
  version: 1,
  tables: ['platform_user_notes'],
  events: [PERSON_NOTE_EVENTS, pick(ACCOUNT_EVENTS, 'account:dissolved')],
  on: {
    'person_note:written': all(sql`
      insert into platform_user_notes
        (id, account_id, platform, platform_user_id, text, created_by, created_at, updated_at)
      select note_id, account_id, platform, platform_user_id, text, created_by, created_at, created_at
      from e where text is not null and platform_user_id is not null on conflict (id) do nothing`),
    'person_note:changed': sql`
      update platform_user_notes n set text = e.text, updated_at = e.updated_at
      from e where n.id = e.note_id and e.text is not null`,
    'person_note:removed': all(sql`delete from platform_user_notes n using e where n.id = e.note_id`),
    'account:dissolved': all(sql`delete from platform_user_notes n using e where n.account_id = e.account_id`),
  },
});
