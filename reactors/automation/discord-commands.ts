import { job, type JobTools } from '../../app/job';
import { botCommandOwner } from '../../domain/automation/bot-commands';
import {
  ANSWER_DISCORD_COMMAND,
  DISCORD_PERSONAL,
  NOT_NOW,
  UsedDiscordCommand,
} from '../../domain/automation/discord-commands';
import { MAX_POST_CHARACTERS } from '../../domain/connections/discord-posts';
import { NotSent } from '../../kernel/job';
import { DiscordLimited } from '../../vendors/discord/port';
import { expandedText } from '../../services/automation/answer-text';
import { beforeCall } from '../../services/automation/called';
import { commandInDiscord } from '../../services/automation/discord-commands';
import { markUnknown } from '../../services/discord/posts';

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
  // A slash command was acknowledged: it needs an answer after the end of its command, too.
  owner: (used) => (isInteraction(used) ? undefined : botCommandOwner(used.command_id)),
  isWanted: async (used, { db }) =>
    used.platform_user_id !== null && (isInteraction(used) || (await commandInDiscord(db, used)) !== undefined),
  onUnknown: (used) => (tx) => markUnknown(tx, used),
  async run(used, _attempt, { db, texts, chats, log }) {
    const { account_id, cause_id, guild_id, channel_id, message_id, application_id, token } = used;
    const interaction = application_id === null || token === null ? null : { application_id, token };
    const text = await beforeCall(async () => (await answerOf(used, { db, texts })).trim() || (interaction && DONE));
    if (!text) return;
    const post = { account_id, cause_id, channel_id, text, reply_to: message_id, of_guild: guild_id, interaction };
    const result = await beforeCall(() => chats.postDiscord(post));
    if (result.sent) return;
    if (result.passing) {
      const { retry_after_ms, error } = result;
      throw retry_after_ms === undefined ? new NotSent(error) : new DiscordLimited(retry_after_ms);
    }
    log.info({ account_id, unknown: result.unknown }, 'a command was not answered in Discord');
    if (result.unknown) return (tx) => markUnknown(tx, used);
  },
});

const isInteraction = ({ application_id }: UsedDiscordCommand): boolean => application_id !== null;

/** Text of the answer; empty without one. */
async function answerOf(used: UsedDiscordCommand, services: Pick<JobTools, 'db' | 'texts'>): Promise<string> {
  const command = await commandInDiscord(services.db, used);
  const { count } = used;
  if (command === undefined || count === null) return isInteraction(used) ? NOT_NOW : '';
  if (command.automation_id !== null) return '';
  const use = { ...used, platform: 'discord', count } as const;
  return expandedText(services, command.response ?? '', use, MAX_POST_CHARACTERS);
}
