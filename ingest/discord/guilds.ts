import type { ActiveConnections } from '../../services/connections/active-connections';
import type { Settings } from '../../kernel/settings/settings';

/** Milliseconds that an answer is cached when no change is reported. */
const HOLDS_MS = 5_000;

export type Guilds = ReturnType<typeof guildsOf>;

/** Finds the account that a Discord server is linked to. */
export function guildsOf(living: ActiveConnections, { bot_token }: Pick<Settings['discord'], 'bot_token'>) {
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
      // A failed read is not cached.
      one.guilds.catch(() => {
        if (asked === one) asked = null;
      });
    }
    return asked.guilds;
  }

  return {
    /** @throws the database's error */
    accountOf: async (guild_id: string): Promise<string | null> => (await guilds()).get(guild_id) ?? null,
    /** Number of linked servers; 0 without a bot. */
    count: async (): Promise<number> => (bot_token === '' ? 0 : (await look()).size),
    close: off,
  };
}
