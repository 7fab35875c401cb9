import { chatPerson, type ChatPerson } from '../../domain/chat-messages';
import { idText, textOf } from '../runtime/webhook';
import { isObject, type Members } from './frame';

/** A member that is a text; null when it is none, or empty. */
export const textAt = (event: Members, name: string): string | null => textOf(event[name]);

/** The person that the members `<prefix>_id`, `_login` and `_name` tell of; null when there is none. */
export function personAt(event: Members, prefix: string): ChatPerson | null {
  const id = idText(event[`${prefix}_id`]);
  return id === null ? null : chatPerson(id, textAt(event, `${prefix}_login`), textAt(event, `${prefix}_name`));
}

const DEEPEST = 8;

/**
 * Ids of everybody whom an event names, wherever it does: all of Twitch's members for persons end in `user_id`. The
 * channel itself is left out.
 */
export function personsIn(event: Members, channel_id: string): Set<string> {
  const found = new Set<string>();
  collect(event, found, 0);
  found.delete(channel_id);
  return found;
}

function collect(value: unknown, found: Set<string>, depth: number): void {
  if (depth > DEEPEST || typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) collect(item, found, depth + 1);
    return;
  }
  for (const name in value) {
    const member = (value as Members)[name];
    if (typeof member === 'string' || typeof member === 'number') {
      if (name.endsWith('user_id') && member !== '' && member !== '0') found.add(String(member));
    } else if (isObject(member) || Array.isArray(member)) collect(member, found, depth + 1);
  }
}
