import { z } from 'zod';
import { command, conflict, del, feature, notFound, patch, permission, post } from '../../app/operation';
import { NOTE_LENGTH, type NoteOf, personNote, personNoteStream } from '../../domain/chat/person-notes';
import { PLATFORMS } from '../../domain/common/vendors';
import type { Queryable } from '../../engines/postgres/port';
import { noteOf, PersonNote } from '../../views/chat/person-notes';

const guard = [feature('feature:multichat'), permission('chat:notes')] as const;
const person = { platform: z.enum(PLATFORMS), platform_user_id: z.string().min(1).max(100) };
const text = z.string().trim().min(1, 'text must not be empty').max(NOTE_LENGTH);
const errors = { NOTE_NOT_FOUND: notFound('Note not found') };
/** Notes of an account about one person. */
const MAX_NOTES = 200;

/** Whether the person has room for another note; a repetition of one that was made needs none. */
async function hasRoom(db: Pick<Queryable, 'query'>, { account_id, platform, platform_user_id }: NoteOf, id: string) {
  const [row] = await db.query<{ count: number }>(
    `select count(*)::int as count from platform_user_notes
     where account_id = $1 and platform = $2 and platform_user_id = $3 and id <> $4`,
    [account_id, platform, platform_user_id, id],
    'person-note-count',
  );
  return row!.count < MAX_NOTES;
}

export const createPlatformUserNote = command({
  name: 'createPlatformUserNote',
  summary: 'Writes a note about a person of the chats',
  rest: post('/v1/chat/users/{platform}/{platform_user_id}/notes', { status: 201 }),
  guard,
  input: z.object({ ...person, text }),
  output: PersonNote,
  errors: { TOO_MANY_NOTES: conflict(`There are at most ${MAX_NOTES} notes about a person`) },
  async run({ input, caller: { account_id, user_id }, context, act, newId, refuse }, { db }) {
    const note_id = newId('person-note');
    const about = { account_id, platform: input.platform, platform_user_id: input.platform_user_id };
    if (!(await hasRoom(db, about, note_id))) throw refuse('TOO_MANY_NOTES');
    const note = { note_id, ...about, text: input.text, created_by: user_id };
    await act(personNote, personNoteStream(note_id), { type: 'person_note:write', ...note });
    const at = new Date(context.now).toISOString();
    return { id: note_id, text: input.text, created_by: user_id, created_at: at, updated_at: at };
  },
});

export const updatePlatformUserNote = command({
  name: 'updatePlatformUserNote',
  summary: 'Changes a note about a person of the chats',
  rest: patch('/v1/chat/users/{platform}/{platform_user_id}/notes/{note_id}'),
  guard,
  input: z.object({ ...person, note_id: z.uuid(), text }),
  output: PersonNote,
  errors,
  async run({ input, caller: { account_id }, context, act, refuse }, { db }) {
    const found = await noteOf(db, account_id, input.note_id);
    if (found === undefined) throw refuse('NOTE_NOT_FOUND');
    await act(personNote, personNoteStream(input.note_id), { type: 'person_note:change', ...input, account_id });
    return { ...found, text: input.text, updated_at: new Date(context.now).toISOString() };
  },
});

export const deletePlatformUserNote = command({
  name: 'deletePlatformUserNote',
  summary: 'Deletes a note about a person of the chats',
  rest: del('/v1/chat/users/{platform}/{platform_user_id}/notes/{note_id}'),
  guard,
  input: z.object({ ...person, note_id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeletedPlatformUserNote' }),
  errors,
  async run({ input, caller: { account_id }, act }) {
    await act(personNote, personNoteStream(input.note_id), { type: 'person_note:remove', ...input, account_id });
    return { success: true };
  },
});
