import { START_AUTOMATION } from '../../domain/automation/automation-runs';
import { ANSWER_COMMAND, LOOK_UP_FOLLOWER } from '../../domain/automation/command-answers';
import { ACT_ON_LINE } from '../../domain/automation/modules/module-acts';
import { TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { memberText } from '../../lib/json/members';
import { chatLine, freshLines } from '../../services/automation/chat-lines';
import { actJobs } from '../../services/automation/modules/line-acts';
import { commandJobs } from '../../services/automation/line-commands';
import { lineModules } from '../../services/automation/modules/line-modules';

/**
 * Lets bots answer commands in chats, commands start automations, and modules act on lines. It has no rows that a
 * rebuild makes: cooldowns, counts and warnings are decided once, in the order of the records.
 */
export const chatBot = projection({
  name: 'chat-bot',
  version: 3,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [],
  jobs: [ANSWER_COMMAND, LOOK_UP_FOLLOWER, ACT_ON_LINE, START_AUTOMATION],
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue, applied } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const fresh = freshLines(
      batch.filter(({ id }) => applied?.has(id.toLowerCase()) !== true),
      Date.now(),
    );
    if (fresh.length === 0) return [];
    const modules = await lineModules(
      tx,
      fresh.map(({ account_id }) => account_id.toLowerCase()),
    );
    const lines = fresh
      .filter((record) => modules.has(record.account_id.toLowerCase()) || isCommand(record))
      .flatMap((record) => chatLine(record) ?? []);
    const asked = [...(await actJobs(lines, modules, tx)), ...(await commandJobs(lines, tx))];
    if (asked.length > 0) await enqueue(tx, asked);
    return [];
  },
});

/** Whether a line may use a command; it is not parsed. */
const isCommand = ({ raw }: LoggedRecord): boolean => memberText(raw, ['text'])?.includes('!') === true;
