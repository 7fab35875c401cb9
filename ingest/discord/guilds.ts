import type { LivingConnections } from '../../access/living-connections';
import type { LinkedConnection } from '../runtime/adapter';
import type { Settings } from '../../kernel/settings';

/** The gateway's one connection: the bot is the installation's, and serves every server that it was let into. */
export const DISCORD_BOT: LinkedConnection = { connection_id: 'discord-bot', account_id: null, channel_id: 'bot' };

/** How long an answer holds, where no change is heard of. */
const HOLDS_MS = 5_000;

export type Guilds = ReturnType<typeof guildsOf>;

/** Which account each Discord server is linked to. */
export function guildsOf(living: LivingConnections, { bot_token }: Pick<Settings['discord'], 'bot_token'>) {
  let asked: { guilds: Promise<ReadonlyMap<string, string>>; at: number } | null = null;
  const forget = () => (asked = null);
  const off = living.onChange(forget);

  async function look(): Promise<ReadonlyMap<string, string>> {
    const linked = await living.of('discord');
    return new Map(linked.map(({ platform_channel_id, account_id }) => [platform_channel_id, account_id]));
  }

  function guilds(): Promise<ReadonlyMap<string, string>> {
    if (asked === null || performance.now() - asked.at > HOLDS_MS) {
      const one = { guilds: look(), at: performance.now() };
      asked = one;
      // The next question asks again.
      one.guilds.catch(() => {
        if (asked === one) asked = null;
      });
    }
    return asked.guilds;
  }

  return {
    /** @throws what the database threw */
    accountOf: async (guild_id: string): Promise<string | null> => (await guilds()).get(guild_id) ?? null,
    /** Whether there is anything to listen for. */
    any: async (): Promise<boolean> => bot_token !== '' && (await look()).size > 0,
    close: off,
  };
}
