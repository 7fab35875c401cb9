import { retry } from '../../lib/async/retry';
import type { SubscriptionAnswer, Twitch, TwitchLogin } from '../../vendors/twitch/port';
import { LinkLost } from '../runtime/connection/adapter';
import { isBefore } from '../runtime/parse/times';
import { CallBudget, LONGEST_LIMIT_MS } from './call-budget';

/** A channel, and the user who reads there. */
export interface Reader {
  channel_id: string;
  user_id: string;
}

export interface Subscription {
  /** Identifies it among those of a channel: its type, and for raids the direction. */
  name: string;
  type: string;
  version: string;
  /** Used where the newer version is unknown: Twitch's own mock has only this one. */
  older?: string;
  condition(reader: Reader): Readonly<Record<string, string>>;
}

const own = ({ channel_id }: Reader) => ({ broadcaster_user_id: channel_id });
const asModerator = (reader: Reader) => ({ ...own(reader), moderator_user_id: reader.user_id });
const asReader = (reader: Reader) => ({ ...own(reader), user_id: reader.user_id });

const of = (condition: Subscription['condition'], version: string, ...types: readonly string[]): Subscription[] =>
  types.map((type) => ({ name: type, type, version, condition }));

const raid = (to: 'to' | 'from'): Subscription => ({
  ...{ name: `channel.raid:${to}`, type: 'channel.raid', version: '1' },
  condition: ({ channel_id }) => ({ [`${to}_broadcaster_user_id`]: channel_id }),
});

const HYPE_TRAIN = ['channel.hype_train.begin', 'channel.hype_train.progress', 'channel.hype_train.end'];

/**
 * Subscriptions of a channel (spec doc3 §6.4), the most important first. Subscriptions of viewers are not among them,
 * because the notices of the chat report those.
 */
export const SUBSCRIPTIONS: readonly Subscription[] = [
  ...of(own, '1', 'stream.online', 'stream.offline'),
  ...of(asReader, '1', 'channel.chat.message', 'channel.chat.notification', 'channel.chat.message_delete'),
  ...of(asModerator, '2', 'channel.follow'),
  ...of(own, '1', 'channel.cheer', 'channel.channel_points_custom_reward_redemption.add'),
  raid('to'),
  raid('from'),
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

/** Types of all subscriptions. */
export const SUBSCRIBED: ReadonlySet<string> = new Set(SUBSCRIPTIONS.map(({ type }) => type));

/** Result of subscribing to all of them. */
export interface Subscribed {
  /** Start by name, and by type: time from which it is received, by Twitch's clock (RFC 3339). */
  since: Record<string, string>;
  /** Refused types, with Twitch's reasons. */
  refused: { type: string; message: string }[];
  /** Points of the app, from Twitch's last answer. */
  cost: { total: number; most: number } | null;
}

/** The token was refused and no other one is better: the session's owner must log in again. */
export class TokenUnusable extends Error {}

/** Concurrent calls of a link: the window of a session is short, and the bucket is the user's own. */
const AT_ONCE = 6;
const RETRY = { first_ms: 250, most_ms: 4_000, tries: 4 };

export interface SubscribeOptions {
  twitch: Twitch;
  session_id: string;
  reader: Reader;
  /** Default: all of them. */
  wanted?: readonly Subscription[];
  /** Present time by Twitch's clock (RFC 3339), for subscriptions without a date of Twitch. */
  now(): string;
  login(refused?: string): Promise<TwitchLogin>;
  /** Called with {@link Subscribed.since} of the types whose conditions are all subscribed to, with each progress. */
  onSince(since: Subscribed['since']): void;
  signal: AbortSignal;
  /** Concurrent calls. Default 6. */
  at_once?: number;
}

/**
 * Subscribes a session to everything. The first request goes alone, because a session without any subscription is
 * closed after some seconds; the others follow a few at a time.
 * @throws LinkLost when Twitch does not answer for one of them
 */
export async function subscribeAll(options: SubscribeOptions): Promise<Subscribed> {
  const { reader, signal, at_once = AT_ONCE } = options;
  const done: Subscribed = { since: {}, refused: [], cost: null };
  const waiting = [...(options.wanted ?? SUBSCRIPTIONS)];
  const open = new Map<string, number>();
  for (const { type } of waiting) open.set(type, (open.get(type) ?? 0) + 1);
  // No call begins once the bucket could be empty by those on their way.
  const budget = new CallBudget({ at_once, reserve: at_once });
  const work = async (count: number): Promise<void> => {
    for (let n = 0; n < count; n += 1) {
      const next = waiting.shift();
      if (next === undefined || signal.aborted) return;
      note(done, next, await subscribe(options, next, { reader, budget }));
      open.set(next.type, open.get(next.type)! - 1);
      options.onSince(Object.fromEntries(Object.entries(done.since).filter(([name]) => (open.get(name) ?? 0) === 0)));
    }
  };
  await work(1);
  await Promise.all(Array.from({ length: at_once }, () => work(Infinity)));
  signal.throwIfAborted();
  return done;
}

function note(done: Subscribed, { name, type }: Subscription, made: Outcome): void {
  if (made.kind === 'refused') {
    done.refused.push({ type, message: made.message === '' ? String(made.status) : made.message });
    return;
  }
  done.cost = made.cost ?? done.cost;
  // For two subscriptions of one type the later start counts, because until then only one of them receives.
  const before = done.since[type];
  if (before === undefined || isBefore(before, made.since)) done.since[type] = made.since;
  done.since[name] ??= made.since;
}

type Outcome =
  { kind: 'made'; since: string; cost: Subscribed['cost'] } | Extract<SubscriptionAnswer, { kind: 'refused' }>;

async function subscribe(
  options: SubscribeOptions,
  wanted: Subscription,
  { reader, budget }: { reader: Reader; budget: CallBudget },
): Promise<Outcome> {
  const { twitch, session_id, signal } = options;
  const { type, older } = wanted;
  const request = { type, version: wanted.version, condition: wanted.condition(reader), session_id };
  let login = await options.login();
  let refused_once = false;
  const give_up_at = Date.now() + LONGEST_LIMIT_MS;
  for (;;) {
    const answer = await retry(() => budget.use(signal, () => twitch.subscribe(login, request, signal)), {
      ...RETRY,
      signal,
      passing: () => true,
    }).catch((cause: unknown) => {
      throw new LinkLost(`Twitch did not answer for ${type}`, { cause });
    });
    switch (answer.kind) {
      case 'made':
        if (answer.left && answer.left.full_at <= Date.now() + LONGEST_LIMIT_MS) budget.note(answer.left);
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
        budget.limited(answer.until);
    }
  }
}
