import type { Json } from '../../kernel/json';
import { within } from '../../kernel/signal';
import { HttpFailed } from '../../vendors/http/port';
import type { DiscordGateway } from '../../vendors/discord/port';
import { Boosts, normaliseDiscord } from './members';
import { DiscordSession, type DiscordTimings, type Kept } from './session';
import { type Adapter, type Link, LinkLost, PauseAsked } from '../runtime/adapter';
import { endSession } from '../runtime/ending';
import { member } from '../runtime/webhook';

export interface DiscordAdapterDeps {
  gateway: DiscordGateway;
  /** The account that a guild is linked to; null for one of nobody. */
  accountOf(guild_id: string): Promise<string | null>;
  timings?: Partial<DiscordTimings>;
}

const TIMINGS: DiscordTimings = { open_ms: 30_000, invalid_ms: [1_000, 5_000] };

/**
 * Discord's gateway with the bot of this installation: one connection, whose words go to the accounts that their
 * guilds are linked to. A session that ended is resumed, by another process too, and Discord repeats what was missed
 * since the last word that is stored; where it cannot, that is told.
 */
export function createDiscordAdapter(deps: DiscordAdapterDeps): Adapter<DiscordSession> {
  const timings = { ...TIMINGS, ...deps.timings };
  const boosts = new Boosts();
  const accountOf = (guild_id: string) => deps.accountOf(guild_id);

  async function open(link: Link, kept: Kept | null): Promise<DiscordSession> {
    const token = await link.token();
    const url = kept?.url ? kept.url : await placeFor(link, token);
    let session: DiscordSession | undefined;
    try {
      session = new DiscordSession(link, accountOf, boosts, timings, deps.gateway.socket(url));
      const late = () => new LinkLost('Discord did not answer in time.');
      await within(session.begin(token, kept && { ...kept, url }), timings.open_ms, late);
      return session;
    } catch (error) {
      session?.end();
      // The address where the session was to go on does not answer: the next try asks Discord for one anew.
      if (kept !== null && session?.over !== true) link.keep({ ...kept, url: '' });
      throw error;
    }
  }

  async function placeFor(link: Link, token: string): Promise<string> {
    try {
      const { url, remaining, reset_after_ms } = await deps.gateway.place(token);
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
    resume: (link, state) => open(link, readKept(state)),
    normalise: normaliseDiscord,
    stop: endSession,
  };
}

function readKept(state: Json): Kept | null {
  const [session_id, seq, url] = ['session_id', 'seq', 'url'].map((name) => member(state, name));
  const whole = typeof session_id === 'string' && typeof url === 'string' && Number.isSafeInteger(seq);
  return whole ? { session_id, seq: seq as number, url } : null;
}
