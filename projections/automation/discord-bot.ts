import { START_AUTOMATION } from '../../domain/automation/automation-runs';
import { nameKey } from '../../domain/automation/bot-commands';
import { isWeaker } from '../../domain/automation/bot-roles';
import { lineExpiry, LINE_MS } from '../../domain/automation/command-answers';
import {
  ANSWER_DISCORD_COMMAND,
  DISCORD_COMMAND,
  type DiscordUseOfCommand,
  readDiscordCommand,
} from '../../domain/automation/discord-commands';
import { onBotCommand } from '../../domain/automation/nodes/triggers';
import { TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import type { JobRequest } from '../../kernel/job';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { holdable } from '../../kernel/texts';
import { takeUses } from '../../services/automation/command-uses';
import { commandsNamed, type EffectiveCommand } from '../../services/automation/effective-commands';
import { lineStart } from '../../services/automation/runs/line-starts';

/**
 * Lets the bot answer commands in Discord, and commands start automations. Cooldowns and counts are decided as for
 * chats; it has no rows.
 */
export const discordBot = projection({
  name: 'discord-bot',
  version: 4,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [],
  jobs: [ANSWER_DISCORD_COMMAND, START_AUTOMATION],
  concerns: { among: async (batch) => batch.filter(({ type }) => type === DISCORD_COMMAND) },
  async apply(batch: readonly LoggedRecord[], tx: Queryable, mode: ApplyMode) {
    const { enqueue, applied } = mode;
    if (enqueue === undefined || mode.rebuilding || mode.silent) return [];
    const uses = usesIn(
      batch.filter(({ id, type }) => type === DISCORD_COMMAND && applied?.has(id.toLowerCase()) !== true),
      Date.now(),
    );
    const asked = await jobsOf(uses, tx);
    if (asked.length > 0) await enqueue(tx, asked);
    return [];
  },
});

interface Use {
  id: string;
  account_id: string;
  person: string;
  at_ms: number;
  key: string;
  used: DiscordUseOfCommand;
}

/** Fresh uses. */
const usesIn = (batch: readonly LoggedRecord[], now_ms: number): Use[] =>
  batch.flatMap(({ id, account_id, subject, occurred_at, received_at, raw }) => {
    const at_ms = Math.min(Date.parse(occurred_at), Date.parse(received_at));
    const used = holdable(readDiscordCommand(raw), raw);
    if (used === null || subject === null || !(now_ms - at_ms <= LINE_MS)) return [];
    const ids = { id: id.toLowerCase(), account_id: account_id.toLowerCase() };
    return [{ ...ids, person: subject, at_ms, key: nameKey(used.word), used }];
  });

async function jobsOf(uses: readonly Use[], tx: Queryable): Promise<JobRequest[]> {
  if (uses.length === 0) return [];
  const commandOf = await commandsNamed(tx, uses);
  const known = uses.flatMap((use) => {
    const command = commandOf(use);
    const isOn = command?.enabled === true && command.platforms.includes('discord');
    return isOn ? [{ ...use, command }] : [];
  });
  const allowed = known.filter(({ used, command }) => !isWeaker(used.role, command.min_role));
  const counts = await takeUses(
    tx,
    allowed.map(({ account_id, person, at_ms, command }) => ({ account_id, person, at_ms, ...command })),
  );
  const countOf = new Map(allowed.map((use, at) => [use.id, counts[at] ?? null]));
  return known.flatMap((use) => {
    const count = countOf.get(use.id) ?? null;
    const start = count === null || use.command.automation_id === null ? [] : [startOf(use, use.command.automation_id)];
    // An interaction was acknowledged, so that it needs an answer.
    const isAnswered = use.used.interaction !== null || (count !== null && start.length === 0);
    return isAnswered ? [...start, answerOf(use, count)] : start;
  });
}

interface KnownUse extends Use {
  command: EffectiveCommand;
}

function answerOf({ id, account_id, at_ms, command, used }: KnownUse, count: number | null): JobRequest {
  const { guild_id, channel_id, message_id, interaction, user_id, user, args } = used;
  const payload = {
    ...{ account_id, command_id: command.command_id, cause_id: id, guild_id, channel_id, message_id, count },
    ...{ application_id: interaction?.application_id ?? null, token: interaction?.token ?? null },
    ...{ platform_user_id: user_id, user, args },
  };
  return { name: ANSWER_DISCORD_COMMAND, key: id, payload, expires_at: lineExpiry(at_ms) };
}

function startOf({ id, account_id, person, at_ms, used }: KnownUse, automation_id: string): JobRequest {
  const { channel_id, message_id, user_id, user, role, args } = used;
  const payload = lineStart({
    ...{ account_id, automation_id, node_ids: [], trigger: onBotCommand.type, cause_id: id, person, at_ms },
    ...{ platform: 'discord', platform_user_id: user_id, user, role, args },
    ...{ channel_id, message_id, live_chat_id: null },
  });
  return { name: START_AUTOMATION, key: payload.start_key, payload };
}
