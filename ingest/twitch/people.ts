import { chatPerson, type ChatPerson } from '../../domain/chat/chat-messages';
import { MAX_DEPTH } from '../../lib/json/depth';
import { idText, textOf } from '../runtime/webhook/webhook';
import type { Members } from './frame';

/** A text member; null for any other type, or when empty. */
export const textAt = (event: Members, name: string): string | null => textOf(event[name]);

/** The person in the members `<prefix>_id`, `_login` and `_name`; null without an id. */
export function personAt(event: Members, prefix: string): ChatPerson | null {
  const id = idText(event[`${prefix}_id`]);
  return id === null ? null : chatPerson(id, textAt(event, `${prefix}_login`), textAt(event, `${prefix}_name`));
}

/**
 * Members with persons that are not named `…user_id`: the channels that share their bans, each of which is its
 * broadcaster's.
 */
const LISTS_OF_PERSONS: ReadonlySet<string> = new Set(['shared_ban_channel_ids']);

/**
 * Ids of all persons in an event, at any depth: all of Twitch's members for one person end in `user_id`. The channel
 * itself is left out. Null when the event is nested too deep to be stored.
 */
export function personsIn(event: Members, channel_id: string): Set<string> | null {
  const found = new Set<string>();
  if (!collect(event, found, MAX_DEPTH)) return null;
  found.delete(channel_id);
  return found;
}

function collect(value: object, found: Set<string>, levels: number): boolean {
  if (levels === 0) return false;
  for (const name in value) {
    const member = (value as Members)[name];
    if (typeof member === 'object' && member !== null) {
      if (LISTS_OF_PERSONS.has(name) && Array.isArray(member)) for (const one of member) note(one, found);
      if (!collect(member, found, levels - 1)) return false;
    } else if (name.endsWith('user_id')) note(member, found);
  }
  return true;
}

function note(value: unknown, found: Set<string>): void {
  const id = idText(value);
  if (id !== null && id !== '0') found.add(id);
}
