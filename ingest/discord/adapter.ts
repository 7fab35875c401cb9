import { isDeepStrictEqual } from 'node:util';
import type { Json } from '../../lib/json/json';
import { withTimeout } from '../../lib/async/signal';
import { HttpFailed } from '../../vendors/http/port';
import type { DiscordGateway } from '../../vendors/discord/port';
import type { DiscordCommands } from './commands';
import { Boosts, normaliseDiscord } from './members';
import { ContentRefused, DiscordSession, type DiscordTimings, type Kept, ShardsRequired } from './session';
import { ONLY_SHARD, type Shard, shardOf, type Shards } from './shards';
import { type Adapter, type Link, LinkLost, PauseAsked } from '../runtime/connection/adapter';
import { endSession } from '../runtime/connection/ending';
import { member } from '../runtime/webhook/webhook';

export interface DiscordAdapterDeps {
  gateway: DiscordGateway;
  /** Returns the account that a guild is linked to; null for an unlinked one. */
  accountOf(guild_id: string): Promise<string | null>;
  shards: Shards;
  /** Finds messages that name a command. */
  commands: DiscordCommands;
  timings?: Partial<DiscordTimings>;
}

const TIMINGS: DiscordTimings = { open_ms: 30_000, invalid_ms: [1_000, 5_000] };

/**
 * Discord's gateway with the bot of this installation: one connection per shard, whose events go to the accounts of
 * their guilds. When Discord requires more shards their number is raised, and all restart. An ended session is resumed,
 * also by another process, and Discord repeats the events since the last stored one; where it cannot, the gap is
 * reported.
 */
export function createDiscordAdapter(deps: DiscordAdapterDeps): Adapter<DiscordSession> {
  const timings = { ...TIMINGS, ...deps.timings };
  const boosts = new Boosts();
  /** Discord has refused the intent of message content: the bot goes on without the content of messages. */
  let content_refused = false;
  const accountOf = (guild_id: string) => deps.accountOf(guild_id);

  async function open(link: Link, kept: Kept | null): Promise<DiscordSession> {
    const token = await link.token();
    const shard = shardOf(link.connection);
    const url = kept?.url ? kept.url : await placeFor(link, token, shard);
    let session: DiscordSession | undefined;
    try {
      session = new DiscordSession(
        { link, accountOf, boosts, timings, commands: deps.commands, wants_content: !content_refused },
        deps.gateway.socket(url),
        shard,
      );
      const late = () => new LinkLost('Discord did not answer in time.');
      await withTimeout(session.begin(token, kept && { ...kept, url }), timings.open_ms, late);
      void session.ended.catch((error: unknown) => raise(error, shard).catch(() => undefined));
      return session;
    } catch (error) {
      session?.end();
      await raise(error, shard);
      // The resume address does not answer: the next try requests another one from Discord.
      if (kept !== null && session?.over !== true) link.keep({ ...kept, shard: [...kept.shard], url: '' });
      throw error;
    }
  }

  /** Raises the number of shards; the next list of connections has the new number. */
  async function raise(error: unknown, [, of]: Shard): Promise<void> {
    if (error instanceof ContentRefused) content_refused = true;
    if (error instanceof ShardsRequired) await deps.shards.atLeast(of + 1);
  }

  async function placeFor(link: Link, token: string, [, of]: Shard): Promise<string> {
    try {
      const { url, shards, remaining, reset_after_ms } = await deps.gateway.place(token);
      if (shards > of) await deps.shards.atLeast(shards);
      if (remaining > 0) return url;
      throw new PauseAsked('Discord lets no more sessions begin today.', reset_after_ms);
    } catch (error) {
      if (!(error instanceof HttpFailed)) throw error;
      if (error.status === 401) await link.token(token);
      if (error.status === 429) throw new PauseAsked('Discord asks to wait.', error.retry_after_ms ?? 5_000);
      throw error;
    }
  }

  return {
    vendor: 'discord',
    connect: (link) => open(link, null),
    resume: (link, state) => open(link, keptFor(link, readKept(state))),
    normalise: normaliseDiscord,
    stop: endSession,
  };
}

/** A session of another shard cannot be resumed: its servers may be others. */
function keptFor(link: Link, kept: Kept | null): Kept | null {
  if (kept === null || isDeepStrictEqual(kept.shard, shardOf(link.connection))) return kept;
  link.missed({ from: link.last_heard, to: Date.now(), detail: 'The bot’s servers are divided over more shards.' });
  return null;
}

function readKept(state: Json): Kept | null {
  const [session_id, seq, url, shard] = ['session_id', 'seq', 'url', 'shard'].map((name) => member(state, name));
  const whole = typeof session_id === 'string' && typeof url === 'string' && Number.isSafeInteger(seq);
  return whole ? { session_id, seq: seq as number, url, shard: readShard(shard) } : null;
}

/** A state without a shard is of a release with a single shard. */
const readShard = (shard: unknown): Shard =>
  Array.isArray(shard) && typeof shard[0] === 'number' && typeof shard[1] === 'number'
    ? [shard[0], shard[1]]
    : ONLY_SHARD;
