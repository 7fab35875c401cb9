import type { StoredEvent } from '../engines/event-store/port';

/** Neighbouring events of one type, so that each run is one statement and the order between types is kept. */
export interface EventRun {
  type: string;
  events: StoredEvent[];
}

export function runsByType(batch: readonly StoredEvent[]): EventRun[] {
  const runs: EventRun[] = [];
  for (const event of batch) {
    const last = runs.at(-1);
    if (last?.type === event.type) last.events.push(event);
    else runs.push({ type: event.type, events: [event] });
  }
  return runs;
}

/** The run's data as one JSON parameter for `jsonb_to_recordset`. */
export const rowsOf = (run: EventRun): string => JSON.stringify(run.events.map((event) => event.data));

/** Like {@link rowsOf}, with only the last event for each key: one statement may touch a row once. */
export function lastRowsOf(run: EventRun, ...members: string[]): string {
  const last = new Map(run.events.map((event) => [members.map((member) => event.data[member]).join(' '), event.data]));
  return JSON.stringify([...last.values()]);
}
