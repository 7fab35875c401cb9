import { nameKey } from '../../domain/automation/bot-commands';
import { isWeaker } from '../../domain/automation/bot-roles';
import { lineExpiry, LINE_MS } from '../../domain/automation/command-answers';
import {
  ANSWER_DISCORD_COMMAND,
  DISCORD_COMMAND,
  type DiscordUseOfCommand,
  readDiscordCommand,
} from '../../domain/automation/discord-commands';
import { TOPICS } from '../../domain/common/records';
import type { Queryable } from '../../engines/postgres/port';
import type { LoggedRecord } from '../../engines/records/port';
import type { JobRequest } from '../../kernel/job';
import { type ApplyMode, projection, topic } from '../../kernel/projection';
import { holdable } from '../../kernel/texts';
import { takeUses } from '../../services/automation/command-uses';
import { commandsNamed } from '../../services/automation/effective-commands';

/** Lets the bot answer commands in Discord. Cooldowns and counts are decided as for chats; it has no rows. */
export const discordBot = projection({
  name: 'discord-bot',
  version: 2,
  awaited: false,
  from: topic(TOPICS.chat_events),
  tables: [],
  jobs: [ANSWER_DISCORD_COMMAND],
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
    // An interaction was acknowledged, so that it needs an answer.
    if (count === null && use.used.interaction === null) return [];
    const { id, account_id, at_ms, command, used } = use;
    const { guild_id, channel_id, message_id, interaction, user_id, user, args } = used;
    const payload = {
      ...{ account_id, command_id: command.command_id, cause_id: id, guild_id, channel_id, message_id, count },
      ...{ application_id: interaction?.application_id ?? null, token: interaction?.token ?? null },
      ...{ platform_user_id: user_id, user, args },
    };
    return [{ name: ANSWER_DISCORD_COMMAND, key: id, payload, expires_at: lineExpiry(at_ms) }];
  });
}
