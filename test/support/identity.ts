import { v7 } from 'uuid';
import type { JsonObject } from '../../lib/json/json';
import type { StoredEvent } from '../../engines/event-store/port';
import type { Database } from '../../engines/postgres/port';
import type { EventProjection } from '../../kernel/projection';

/** The same id for the same number. */
export const uuid = (n: number): string => `00000000-0000-7000-8000-${String(n).padStart(12, '0')}`;

/** Applies events as one page, `times` over, each time in a transaction of its own. */
export async function feed(
  db: Database,
  projection: EventProjection,
  events: readonly { type: string; [member: string]: unknown }[],
  times = 1,
): Promise<void> {
  const page = events.map(({ type, ...data }, index): StoredEvent => ({
    id: v7(),
    stream: 'test',
    revision: index,
    position: String(index),
    type,
    data: data as unknown as JsonObject,
    metadata: {},
    recorded_at: '2026-01-02T03:04:05Z',
  }));
  for (let time = 0; time < times; time += 1)
    await db.transaction((tx) => projection.apply(page, tx, { rebuilding: false }));
}
