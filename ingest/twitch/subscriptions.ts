import { retry } from '../../kernel/retry';
import { pause } from '../../kernel/signal';
import type { SubscriptionAnswer, Twitch, TwitchLogin } from '../../vendors/twitch/port';
import { LinkLost } from '../runtime/adapter';

/** Whose channel it is, and who reads there. */
export interface Reader {
  channel_id: string;
  user_id: string;
}

interface Subscription {
  type: string;
  version: string;
  /** Taken where the newer one is not known: Twitch's own mock has it alone. */
  older?: string;
  condition(reader: Reader): Readonly<Record<string, string>>;
}

const own = ({ channel_id }: Reader) => ({ broadcaster_user_id: channel_id });
const asModerator = (reader: Reader) => ({ ...own(reader), moderator_user_id: reader.user_id });
const asReader = (reader: Reader) => ({ ...own(reader), user_id: reader.user_id });

const of = (condition: Subscription['condition'], version: string, ...types: readonly string[]): Subscription[] =>
  types.map((type) => ({ type, version, condition }));

const HYPE_TRAIN = ['channel.hype_train.begin', 'channel.hype_train.progress', 'channel.hype_train.end'];

/**
 * What a channel is subscribed to (spec doc3 §6.4), what is sorely missed first. Subscriptions of viewers are not among
 * them: the notices of the chat tell of those.
 */
export const SUBSCRIPTIONS: readonly Subscription[] = [
  ...of(own, '1', 'stream.online', 'stream.offline'),
  ...of(asReader, '1', 'channel.chat.message', 'channel.chat.notification', 'channel.chat.message_delete'),
  ...of(asModerator, '2', 'channel.follow'),
  ...of(own, '1', 'channel.cheer', 'channel.channel_points_custom_reward_redemption.add'),
  { type: 'channel.raid', version: '1', condition: ({ channel_id }) => ({ to_broadcaster_user_id: channel_id }) },
  { type: 'channel.raid', version: '1', condition: ({ channel_id }) => ({ from_broadcaster_user_id: channel_id }) },
  ...of(own, '2', 'channel.update'),
  ...of(asModerator, '2', 'channel.moderate'),
  ...of(own, '1', 'channel.ban', 'channel.unban'),
  ...of(own, '2', ...HYPE_TRAIN).map((one) => ({ ...one, older: '1' })),
  ...of(own, '1', 'channel.poll.begin', 'channel.poll.progress', 'channel.poll.end'),
  ...of(own, '1', 'channel.prediction.begin', 'channel.prediction.progress'),
  ...of(own, '1', 'channel.prediction.lock', 'channel.prediction.end'),
  ...of(own, '1', 'channel.goal.begin', 'channel.goal.progress', 'channel.goal.end'),
  ...of(own, '1', 'channel.ad_break.begin'),
  ...of(asModerator, '1', 'channel.suspicious_user.message', 'channel.suspicious_user.update'),
];

/** The types of all of them. */
export const SUBSCRIBED: ReadonlySet<string> = new Set(SUBSCRIPTIONS.map(({ type }) => type));

/** What came of asking for all of them. */
export interface Subscribed {
  /** By type: from when on it is received, by Twitch's clock (RFC 3339). */
  since: Record<string, string>;
  /** What Twitch refuses, and why. */
  refused: { type: string; message: string }[];
  /** Of the app's points, as Twitch last said. */
  cost: { total: number; most: number } | null;
}

/** The token was refused and no other one is better: the session's owner must log in again. */
export class TokenUnusable extends Error {}

/** Made at a time: the window of a session is short, and the bucket of calls is the user's own. */
const AT_ONCE = 5;
const RETRY = { first_ms: 250, most_ms: 4_000, tries: 4 };
/** A bucket is full again after a minute; what is not by then has another reason. */
const LONGEST_LIMIT_MS = 65_000;

export interface SubscribeOptions {
  twitch: Twitch;
  session_id: string;
  reader: Reader;
  /** By Twitch's clock (RFC 3339): by then what it does not date is subscribed to. */
  now(): string;
  login(refused?: string): Promise<TwitchLogin>;
  signal: AbortSignal;
}

/**
 * Subscribes a session to everything. The first one goes alone, since a session without any is closed after some
 * seconds; the others follow a few at a time.
 * @throws LinkLost when Twitch does not answer for one of them
 */
export async function subscribeAll(options: SubscribeOptions): Promise<Subscribed> {
  const { reader, signal } = options;
  const done: Subscribed = { since: {}, refused: [], cost: null };
  const waiting = [...SUBSCRIPTIONS];
  const work = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) {
      const next = waiting.shift();
      if (next === undefined || signal.aborted) return;
      note(done, next.type, await subscribe(options, next, reader));
    }
  };
  await work(1);
  await Promise.all(Array.from({ length: AT_ONCE }, () => work(Infinity)));
  signal.throwIfAborted();
  return done;
}

function note(done: Subscribed, type: string, made: Outcome): void {
  if (made.kind === 'refused') {
    done.refused.push({ type, message: made.message === '' ? String(made.status) : made.message });
    return;
  }
  done.cost = made.cost ?? done.cost;
  // Two of one type: what the later one does not see yet, the earlier one sees alone.
  const before = done.since[type];
  if (before === undefined || before < made.since) done.since[type] = made.since;
}

type Outcome =
  { kind: 'made'; since: string; cost: Subscribed['cost'] } | Extract<SubscriptionAnswer, { kind: 'refused' }>;

async function subscribe(options: SubscribeOptions, wanted: Subscription, reader: Reader): Promise<Outcome> {
  const { twitch, session_id, signal } = options;
  const { type, older } = wanted;
  const request = { type, version: wanted.version, condition: wanted.condition(reader), session_id };
  let login = await options.login();
  let refused_once = false;
  const give_up_at = Date.now() + LONGEST_LIMIT_MS;
  for (;;) {
    const answer = await retry(() => twitch.subscribe(login, request, signal), {
      ...RETRY,
      signal,
      passing: () => true,
    }).catch((cause: unknown) => {
      throw new LinkLost(`Twitch did not answer for ${type}`, { cause });
    });
    switch (answer.kind) {
      case 'made':
        return { kind: 'made', since: answer.created_at ?? options.now(), cost: answer.cost };
      case 'refused':
        if (answer.status !== 400 || older === undefined || request.version === older) return answer;
        request.version = older;
        break;
      case 'unauthorised':
        if (refused_once) throw new TokenUnusable('Twitch takes no token of this connection');
        refused_once = true;
        login = await options.login(login.token);
        break;
      case 'limited':
        if (answer.until > give_up_at) return { kind: 'refused', status: 429, message: 'too many calls' };
        await pause(Math.max(answer.until - Date.now(), 100) * (1 + Math.random() / 4), signal);
        signal.throwIfAborted();
    }
  }
}
