import type { DrawnEvent } from './types';

/** Type of a message by which a page removes an event. */
export const ERASED = 'event:erased';
/** Events that a page keeps for lists that are added later. */
const MOST = 20;

const timeOf = ({ created_at }: DrawnEvent): number => Date.parse(created_at);

/** Newest events of both, newest first, each once. */
export function mergedEvents(some: readonly DrawnEvent[], others: readonly DrawnEvent[]): DrawnEvent[] {
  const ids = new Set(some.map(({ id }) => id));
  const all = [...some, ...others.filter(({ id }) => !ids.has(id))];
  return all.sort((a, b) => timeOf(b) - timeOf(a)).slice(0, MOST);
}

/** Newest events after a message; events of tests, which have no id, are not among them. */
export function recentAfter(recent: DrawnEvent[], event_type: string, data: Record<string, unknown>): DrawnEvent[] {
  if (event_type === ERASED) return recent.filter(({ id }) => id !== data.id);
  const is_event = !event_type.startsWith('chat:') && event_type !== 'spotify:now-playing';
  return is_event && typeof data.id === 'string' ? mergedEvents([data as unknown as DrawnEvent], recent) : recent;
}
