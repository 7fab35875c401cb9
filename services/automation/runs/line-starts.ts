import { v5 } from 'uuid';
import { NO_CAUSE, type RunCause, type RunStart } from '../../../domain/automation/automation-runs';
import { LINE_MS } from '../../../domain/automation/command-answers';

/** Namespace of the ids of runs that lines of chats start; any fixed UUID does. */
const RUNS = '0c3e5d5f-2b3e-4e0f-8f6a-6a6f6a1d7b42';

/** A line of a chat that starts an automation. */
export interface StartingLine {
  account_id: string;
  automation_id: string;
  /** Triggers at which the run begins; none: all of the type. */
  node_ids: string[];
  trigger: string;
  /** Id of the record. */
  cause_id: string;
  platform: string;
  platform_user_id: string;
  user: string;
  role: string;
  /** Keyed hash of the person. */
  person: string;
  /** Text after a command. */
  args: string | null;
  channel_id: string;
  message_id: string | null;
  live_chat_id: string | null;
  /** Time of the line, in milliseconds since 1970. */
  at_ms: number;
}

/** The start of a run by a line: one for each line and automation. */
export function lineStart(line: StartingLine): RunStart {
  const { account_id, automation_id, node_ids, trigger, platform, platform_user_id, user, role, person } = line;
  const { args, channel_id, message_id, live_chat_id, at_ms } = line;
  const subject = `${platform}:${platform_user_id}`;
  const cause: RunCause = {
    ...{ ...NO_CAUSE, platform, author: { id: platform_user_id, name: user, role }, person, subject },
    ...{ args, channel_id, message_id, live_chat_id },
  };
  const start_key = `${automation_id}:${trigger}:${line.cause_id}`;
  return {
    ...{
      account_id,
      automation_id,
      run_id: v5(start_key, RUNS),
      start_key,
      trigger,
      node_ids,
      event_id: null,
      depth: 0,
    },
    ...{ at_ms, window_ms: LINE_MS, permissions: null, persons: [person], subject, cause: JSON.stringify(cause) },
  };
}
