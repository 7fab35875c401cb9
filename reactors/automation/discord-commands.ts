import { job } from '../../app/job';
import { botCommandOwner } from '../../domain/automation/bot-commands';
import { ANSWER_DISCORD_COMMAND, DISCORD_PERSONAL, UsedDiscordCommand } from '../../domain/automation/discord-commands';
import { MAX_POST_CHARACTERS } from '../../domain/connections/discord-posts';
import { NotSent } from '../../kernel/job';
import { DiscordLimited } from '../../vendors/discord/port';
import { hasBotsInDiscord } from '../../services/automation/discord-commands';
import { expandedText } from '../../services/automation/answer-text';
import { effectiveCommand } from '../../services/automation/effective-commands';
import { markUnknown } from '../../services/discord/posts';

/** Answer of a slash command within a cooldown, or of a stronger role. */
const NOT_NOW = 'You cannot use this command now.';

/** Answer of a slash command that has no text: it starts an automation. */
const DONE = 'Done.';

/** Answers a command in the channel of its message, as a reply. */
export const answerDiscordCommand = job({
  name: ANSWER_DISCORD_COMMAND,
  payload: UsedDiscordCommand,
  personal: DISCORD_PERSONAL,
  retries: 30,
  after_unknown: 'end',
  pauses: { first_ms: 1_000, most_ms: 5_000 },
  timeout_ms: 15_000,
  lane: ({ account_id }) => `${account_id}:discord`,
  owner: ({ command_id }) => botCommandOwner(command_id),
  async isWanted(used, { db }) {
    if (used.platform_user_id === null || !(await hasBotsInDiscord(db, used))) return false;
    const command = await effectiveCommand(db, used);
    return command?.enabled === true && command.platforms.includes('discord');
  },
  onUnknown: (used) => (tx) => markUnknown(tx, used),
  async run(used, _attempt, { db, texts, chats, log }) {
    const { account_id, cause_id, guild_id, channel_id, message_id } = used;
    const command = await effectiveCommand(db, used);
    const { application_id, token, count } = used;
    const use = { ...used, platform: 'discord', count: count ?? 0 } as const;
    const response = command?.automation_id === null ? (command.response ?? '') : '';
    const expanded = count === null ? NOT_NOW : await expandedText({ db, texts }, response, use, MAX_POST_CHARACTERS);
    const interaction = application_id === null || token === null ? null : { application_id, token };
    const text = expanded.trim() === '' && interaction !== null ? DONE : expanded;
    if (text === '') return;
    const post = { account_id, cause_id, channel_id, text, reply_to: message_id, of_guild: guild_id, interaction };
    const result = await chats.postDiscord(post);
    if (result.sent) return;
    if (result.passing) {
      const { retry_after_ms, error } = result;
      throw retry_after_ms === undefined ? new NotSent(error) : new DiscordLimited(retry_after_ms);
    }
    log.info({ account_id, unknown: result.unknown }, 'a command was not answered in Discord');
  },
});
