import { START_AUTOMATION } from '../../../domain/automation/automation-runs';
import { shownRole } from '../../../domain/automation/bot-roles';
import { onFirstMessage } from '../../../domain/automation/nodes/triggers';
import type { Queryable } from '../../../engines/postgres/port';
import type { LoggedRecord } from '../../../engines/records/port';
import type { JobRequest } from '../../../kernel/job';
import { triggersOf } from '../automations/triggers';
import { chatLine, type ChatLine, freshLines, ofPersons, shownName } from '../chat-lines';
import { lineStart } from './line-starts';

/** Starts of automations by the first lines of persons in the chats of an account. */
export async function firstLineStarts(
  records: readonly LoggedRecord[],
  tx: Queryable,
  now_ms: number,
): Promise<JobRequest[]> {
  const lines = freshLines(records, now_ms).flatMap((record) => chatLine(record) ?? []);
  const triggers = await triggersOf(
    tx,
    onFirstMessage.type,
    lines.map(({ account_id }) => ({ account_id, type: '' })),
  );
  if (triggers.length === 0) return [];
  return (await ofPersons(lines, tx)).flatMap((line) => {
    const fitting = triggers.filter(({ account_id, config }) => {
      const platforms = config.platforms as string[] | undefined;
      return account_id === line.account_id && (platforms === undefined || platforms.includes(line.platform));
    });
    return [...new Set(fitting.map(({ automation_id }) => automation_id))].map((automation_id) => {
      const own = fitting.filter((one) => one.automation_id === automation_id);
      return startOf(
        line,
        automation_id,
        own.map(({ node_id }) => node_id),
      );
    });
  });
}

function startOf(line: ChatLine, automation_id: string, node_ids: string[]): JobRequest {
  const { id, account_id, platform, platform_user_id, person, at_ms, message, message_id } = line;
  const payload = lineStart({
    ...{ account_id, automation_id, node_ids, trigger: onFirstMessage.type, cause_id: id, platform, person, at_ms },
    ...{ platform_user_id, user: shownName(line), role: shownRole(message), args: null },
    ...{ channel_id: message.channel_id, message_id, live_chat_id: message.live_chat_id },
  });
  return { name: START_AUTOMATION, key: payload.start_key, payload };
}
