import { v5 } from 'uuid';
import {
  CAUSE_MS,
  NO_CAUSE,
  type RunCause,
  START_AUTOMATION,
  type RunStart,
} from '../../../domain/automation/automation-runs';
import { messagePatterns, onMessage } from '../../../domain/automation/nodes/triggers';
import { eventUserId } from '../../../domain/events/event-users';
import { accountOfEvents } from '../../../domain/events/events';
import type { ChannelTransition } from '../../../domain/history/channel-status';
import type { Queryable } from '../../../engines/postgres/port';
import type { JobRequest } from '../../../kernel/job';
import type { ChannelMessage } from '../../../kernel/projection';
import { triggersOf } from '../automations/triggers';

/** Namespace of the ids of runs and of messages; any fixed UUID does. */
const MESSAGES = 'd0a4be27-6c0e-4a43-8d1f-5b0a7f6f8c31';

/** A message on the events of an account that is broadcast and not stored. */
export interface BroadcastMessage {
  /** Differs between messages, and is kept by repetitions of one. */
  id: string;
  account_id: string;
  type: string;
  platform: string;
  /** JSON text. */
  raw: string;
  /** RFC 3339 */
  created_at: string;
  /** Keyed hash of the person whom `raw` names; absent without one. */
  person?: string | undefined;
}

/** Starts of the automations whose triggers name these messages: one for each message and automation. */
export async function messageStarts(
  db: Pick<Queryable, 'query'>,
  messages: readonly BroadcastMessage[],
  now_ms: number,
): Promise<JobRequest[]> {
  const fresh = messages.filter(
    ({ type, created_at }) => messagePatterns(type).length > 0 && now_ms - Date.parse(created_at) <= CAUSE_MS,
  );
  const causes = fresh.flatMap(({ account_id, type }) =>
    messagePatterns(type).map((one) => ({ account_id, type: one })),
  );
  const triggers = await triggersOf(db, onMessage.type, causes);
  return fresh.flatMap((message) => {
    const patterns = messagePatterns(message.type);
    const fitting = triggers.filter(
      ({ account_id, matches }) => account_id === message.account_id && patterns.some((one) => matches.includes(one)),
    );
    return [...new Set(fitting.map(({ automation_id }) => automation_id))].map((automation_id) => {
      const own = fitting.filter((one) => one.automation_id === automation_id);
      const payload = messageStart(
        message,
        automation_id,
        own.map(({ node_id }) => node_id),
      );
      return { name: START_AUTOMATION, key: payload.start_key, payload };
    });
  });
}

function messageStart(message: BroadcastMessage, automation_id: string, node_ids: string[]): RunStart {
  const { id, account_id, type, platform, raw, created_at, person } = message;
  const user_id = eventUserId(platform, raw);
  const subject = user_id === null ? null : `${platform}:${user_id}`;
  const event = { id: null, type, platform, raw, created_at };
  const cause: RunCause = { ...NO_CAUSE, platform, person: person ?? null, subject, event };
  const start_key = `${automation_id}:${onMessage.type}:${id}`;
  return {
    ...{ account_id, automation_id, run_id: v5(start_key, MESSAGES), start_key, trigger: onMessage.type, node_ids },
    ...{ event_id: null, depth: 0, at_ms: Date.parse(created_at), window_ms: CAUSE_MS, permissions: null },
    ...{ persons: person === undefined ? [] : [person], subject, cause: JSON.stringify(cause) },
  };
}

/** Messages on the events of accounts that a channel has gone on or off air. */
export const turnMessages = (messages: readonly ChannelMessage[]): BroadcastMessage[] =>
  messages.flatMap(({ channel, data }) => {
    const account_id = accountOfEvents(channel);
    if (account_id === null) return [];
    const { payload } = JSON.parse(data) as { payload: ChannelTransition };
    const created_at = (payload.type === 'channel:online' ? payload.started_at : payload.ended_at) ?? '';
    const raw = JSON.stringify(payload);
    const { type, platform } = payload;
    return [{ id: v5(`${account_id} ${raw}`, MESSAGES), account_id, type, platform, raw, created_at }];
  });
