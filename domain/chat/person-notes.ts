import { z } from 'zod';
import type { Decider } from '../../kernel/decider';
import { DomainError } from '../../kernel/errors';
import { event, events, instant, type EventOf } from '../../kernel/event';
import { PLATFORMS, type Platform } from '../common/vendors';

/** Most characters of a note. */
export const NOTE_LENGTH = 2_000;

const ids = { note_id: z.uuid(), account_id: z.uuid() };
const about = { platform: z.enum(PLATFORMS), platform_user_id: z.string().nullable() };
const text = z.string().nullable();

/** The person whom the note is about, by the platform's id. */
const person = ({ platform, platform_user_id }: Record<string, unknown>): string | null =>
  typeof platform_user_id === 'string' ? `${String(platform)}:${platform_user_id}` : null;
const options = {
  personal: { platform_user_id: person, text: person },
  audit: { target: ['person_note', 'note_id'] },
} as const;

/** Notes of moderators about people of the chats; a text is sealed under the key of the person whom it is about. */
export const PERSON_NOTE_EVENTS = events({
  'person_note:written': event(
    { ...ids, ...about, text, created_by: z.uuid().nullable(), created_at: instant() },
    options,
  ),
  'person_note:changed': event({ ...ids, ...about, text, updated_at: instant() }, options),
  'person_note:removed': event({ ...ids, removed_at: instant() }, { audit: options.audit }),
});
export type PersonNoteEvent = EventOf<typeof PERSON_NOTE_EVENTS>;

/** The person of a note, and the account whose note it is. */
export interface NoteOf {
  account_id: string;
  platform: Platform;
  platform_user_id: string;
}
export type PersonNoteCommand =
  | ({ type: 'person_note:write'; note_id: string; text: string; created_by: string | null; now: string } & NoteOf)
  | ({ type: 'person_note:change'; note_id: string; text: string; now: string } & NoteOf)
  | ({ type: 'person_note:remove'; note_id: string; now: string } & NoteOf);

export const personNoteStream = (note_id: string): string => `person-note-${note_id}`;

/** The person of a note; null of a note that was removed, or never written. */
export const personNote: Decider<
  (Omit<NoteOf, 'platform_user_id'> & { platform_user_id: string | null }) | null,
  PersonNoteCommand,
  PersonNoteEvent
> = {
  initial: null,
  decide(state, command) {
    const { type, now, ...rest } = command;
    if (type === 'person_note:write') {
      if (state !== null) throw new DomainError('NOTE_EXISTS');
      const { note_id, account_id, platform, platform_user_id, text: written, created_by } = command;
      const of = { note_id, account_id, platform, platform_user_id };
      return [{ type: 'person_note:written', ...of, text: written, created_by, created_at: now }];
    }
    const is_same =
      state !== null &&
      state.account_id === rest.account_id &&
      state.platform === rest.platform &&
      state.platform_user_id === rest.platform_user_id;
    if (!is_same) throw new DomainError('NOTE_NOT_FOUND');
    const { note_id, account_id, platform, platform_user_id } = command;
    if (type === 'person_note:remove') return [{ type: 'person_note:removed', note_id, account_id, removed_at: now }];
    const of = { note_id, account_id, platform, platform_user_id };
    return [{ type: 'person_note:changed', ...of, text: command.text, updated_at: now }];
  },
  evolve: (_state, event) =>
    event.type === 'person_note:removed'
      ? null
      : { account_id: event.account_id, platform: event.platform, platform_user_id: event.platform_user_id },
};
