import { chatChannel } from '../../../domain/chat/chat-messages';
import { eventsChannel } from '../../../domain/events/events';
import { drawnChat, drawnEvent, drawnSong, maskDrawn } from '../../../domain/studio/drawn-events';
import type { Json } from '../../../lib/json/json';
import type { Mask } from '../../../services/automation/modules/masks';

/** A message as pages get it; `data` is JSON text. */
export interface Drawn {
  event_type: string;
  data: string;
}

/** A message of a source. */
export interface Arrived {
  event_type: string;
  data: Json;
  /** The message is in the log of the source. */
  is_stored: boolean;
}

/** A channel of an account whose messages are forwarded to its pages. */
export interface Source {
  channel(account_id: string): string;
  /** Flag of the source itself. */
  flag: string;
  /** Types that draw its messages. */
  drawn_by: ReadonlySet<string>;
  /** Event type by which a page removes a message whose content was erased. */
  erased?: string;
  /** Labels of pages name people of its messages, however old. */
  has_labels?: true;
  /** Null of a message that no page draws. */
  drawn(message: Arrived, mask: Mask): Drawn | null;
}

const object = (data: Json): Record<string, Json> | null =>
  typeof data === 'object' && data !== null && !Array.isArray(data) ? data : null;
const text = (value: Json | undefined): string | null => (typeof value === 'string' ? value : null);

export const SOURCES: readonly Source[] = [
  {
    channel: chatChannel,
    flag: 'feature:multichat',
    drawn_by: new Set(['chat', 'custom']),
    erased: 'chat:erased',
    drawn({ data }, mask) {
      const message = object(data);
      const drawn = message === null ? null : drawnChat(message);
      return drawn === null
        ? null
        : { event_type: drawn.event_type, data: JSON.stringify(maskDrawn(drawn.data, mask)) };
    },
  },
  {
    channel: eventsChannel,
    flag: 'feature:events',
    drawn_by: new Set(['alerts', 'event_list', 'text', 'custom']),
    erased: 'event:erased',
    has_labels: true,
    drawn({ event_type, data, is_stored }, mask) {
      const event = object(data);
      const [platform, created_at] = [text(event?.platform), text(event?.created_at)];
      if (event === null || platform === null || created_at === null) return null;
      const id = is_stored ? (text(event.id) ?? undefined) : undefined;
      const drawn = drawnEvent({ id, type: event_type, platform, payload: event.payload ?? null, created_at });
      return drawn === null ? null : { event_type, data: JSON.stringify(maskDrawn(drawn, mask)) };
    },
  },
  {
    channel: (account_id) => `spotify:${account_id}`,
    flag: 'feature:music',
    drawn_by: new Set(['music', 'text', 'custom']),
    drawn: ({ event_type, data }, mask) => ({ event_type, data: JSON.stringify(maskDrawn(drawnSong(data), mask)) }),
  },
];
