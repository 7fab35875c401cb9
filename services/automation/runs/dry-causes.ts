import type { Graph } from '../../../domain/automation/automation-graphs';
import { NO_CAUSE, type RunCause } from '../../../domain/automation/automation-runs';
import { onSchedule } from '../../../domain/automation/nodes/schedules';
import {
  manually,
  messagePatterns,
  onEvent,
  onMessage,
  passesFilters,
} from '../../../domain/automation/nodes/triggers';
import { EVENT_COLUMNS, type EventRow } from '../../../domain/events/events';
import { eventUserId } from '../../../domain/events/event-users';
import type { Queryable } from '../../../engines/postgres/port';
import type { SubjectKeys } from '../../../privacy/subject-keys/port';
import { parsedJson } from '../../../lib/json/paths';

/** An event of a dry run; one of the catalogue has no id. */
export type DryEvent = Pick<EventRow, 'type' | 'platform' | 'raw' | 'created_at'> & { id: string | null };

/** An event of the account; undefined of any other. */
export async function storedEvent(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  id: string,
): Promise<EventRow | undefined> {
  const [row] = await db.query<EventRow & Record<string, unknown>>(
    `select ${EVENT_COLUMNS} from platform_event_logs where account_id = $1 and id = $2 limit 1`,
    [account_id, id],
    'dry-run-event',
  );
  return row;
}

/** Triggers of a graph that an event starts; without one those that start by hand or by their times. */
export function dryTriggers({ nodes }: Graph, event: DryEvent | null): string[] {
  const payload = event === null ? null : parsedJson(event.raw);
  const starts = ({ type, config }: Graph['nodes'][number]): boolean => {
    if (event === null) return type === manually.type || type === onSchedule.type;
    if (type === onEvent.type)
      return (config.event_types as string[]).includes(event.type) && passesFilters(config, payload);
    const patterns = messagePatterns(event.type);
    return type === onMessage.type && patterns.some((one) => (config.types as string[]).includes(one));
  };
  return nodes.filter(starts).map(({ id }) => id);
}

/** Permissions of which each reads a part of an event. */
const EVENT_READERS = ['events:read', 'events:userinfo'];

/** The cause of a dry run, for a caller with these permissions. */
export async function dryCause(
  { hashes }: { hashes: Pick<SubjectKeys, 'hashesOf'> },
  event: DryEvent | null,
  permissions: ReadonlySet<string>,
): Promise<RunCause> {
  if (event === null) return NO_CAUSE;
  const { id, type, platform, raw, created_at } = event;
  const user_id = eventUserId(platform, raw);
  const subject = user_id === null ? null : `${platform}:${user_id}`;
  const person = subject === null ? null : (await hashes.hashesOf([subject])).get(subject)!;
  const shown = EVENT_READERS.some((one) => permissions.has(one)) ? { id, type, platform, raw, created_at } : null;
  return { ...NO_CAUSE, platform, person, subject, event: shown };
}
