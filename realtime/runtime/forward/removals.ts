import type { Json } from '../../../lib/json/json';
import { memberAt, parsedJson } from '../../../lib/json/paths';
import type { Removal } from '../delivery/outbox';

/** Messages of a channel that others remove. */
export interface Removals {
  /** Ids of records whose content was erased, with the seqs of their messages. */
  erased: ReadonlyMap<string, number>;
  /** Whether the data of the message at `seq` is of a chat message that was deleted or cleared later. */
  covers(seq: number, data: string): boolean;
}

/** Reads removals of a chat, and messages that were erased. */
export function removalsIn(rows: readonly Removal[]): Removals {
  const erased = new Map<string, number>();
  const deleted = new Set<string>();
  const cleared = new Map<string, number>();
  for (const { seq, event_type, data } of rows) {
    const removal = parsedJson(data);
    const message_id = textAt(removal, 'platform_message_id');
    const id = textAt(removal, 'id');
    if (event_type === 'chat:clear_user') cleared.set(personIn(removal), seq);
    else if (event_type !== 'chat:delete' && id !== null) erased.set(id, seq);
    else if (message_id !== null) deleted.add(message_id);
  }
  return {
    erased,
    covers(seq, data) {
      if (deleted.size === 0 && cleared.size === 0) return false;
      const message = parsedJson(data);
      if (memberAt(message, ['type']) !== undefined) return false;
      const message_id = textAt(message, 'platform_message_id');
      return (message_id !== null && deleted.has(message_id)) || (cleared.get(personIn(message)) ?? -1) > seq;
    },
  };
}

const textAt = (value: Json, name: string): string | null => memberAt<string | null>(value, [name]) ?? null;
/** Nobody of a message without an author: no clearing names one. */
const personIn = (value: Json): string =>
  JSON.stringify([textAt(value, 'platform'), textAt(value, 'platform_user_id')]);
