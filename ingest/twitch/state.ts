import { z } from 'zod';
import type { Json } from '../../kernel/json';
import type { Twitch, TwitchLogin } from '../../vendors/twitch/port';
import { instantAt, isBefore, mayBeBefore, readTime } from '../runtime/times';
import { idText, keptId, member } from '../runtime/webhook';
import { isObject, type Members } from './frame';
import { textAt } from './people';

/** What goes on on a channel, as far as events have told; ids alone. */
const Known = z.object({
  /** Of the broadcast; null when offline. */
  stream: z.string().nullable(),
  hype_train: z.string().nullable(),
  poll: z.string().nullable(),
  /** Of the prediction that is open or locked, with which of both. */
  prediction: z.string().nullable(),
  /** Amounts by the id of the goal. */
  goals: z.record(z.string(), z.number()),
});
export type Known = z.output<typeof Known>;

export const NOTHING_KNOWN: Known = { stream: null, hype_train: null, poll: null, prediction: null, goals: {} };

/** What a session leaves for the next one, of this process or another. */
const SessionState = z.object({
  session_id: z.string(),
  /** By type of subscription: from when on the session receives it, by Twitch's clock. */
  since: z.record(z.string(), z.string()),
  known: Known,
  /** The same of the sessions before it, the eldest first: whoever held the connection, and holds it no more. */
  earlier: z.array(z.record(z.string(), z.string())).default([]),
});
export type SessionState = z.output<typeof SessionState>;

/** Null when it is none that this build can read. */
export const readState = (state: Json): SessionState | null => SessionState.safeParse(state).data ?? null;

/** A connection moves a few times at most while a process is paused that held it. */
const MOST_EARLIER = 3;

/** The sessions before the one that follows on this. */
export const earlierThan = (before: SessionState | null): SessionState['earlier'] =>
  before === null ? [] : [...before.earlier, before.since].slice(-MOST_EARLIER);

/**
 * Whether what was sent at a moment may have come before anybody was subscribed to its type who followed on `own`. The
 * connection may have moved more than once since: the first who followed counts, not who holds it now. In doubt it
 * did: what both have received counts once where it has one id, and what neither stores is lost.
 */
export function isBeforeFollowers(state: Json, own: Json, type: string, sent_at: unknown): boolean {
  const follower = readState(state);
  const sessions = follower === null ? [] : [...follower.earlier, follower.since];
  const mine = member(readState(own)?.since, type);
  const theirs = sessions.map((since) => member(since, type)).filter((since) => since !== undefined);
  // What no follower receives at all, none of them can have received.
  return theirs
    .filter((since) => mine === undefined || isBefore(mine, since))
    .every((since) => mayBeBefore(sent_at, since));
}

/** What is known after an event of that type; the same object when it says nothing of that kind. */
export function knownAfter(known: Known, type: string, event: Members): Known {
  const id = keptId(event['id']);
  switch (type) {
    case 'stream.online':
      return { ...known, stream: id };
    case 'stream.offline':
      return { ...known, stream: null };
    case 'channel.hype_train.begin':
    case 'channel.hype_train.progress':
      return known.hype_train === id ? known : { ...known, hype_train: id };
    case 'channel.hype_train.end':
      return { ...known, hype_train: null };
    case 'channel.poll.begin':
    case 'channel.poll.progress':
      return known.poll === id ? known : { ...known, poll: id };
    case 'channel.poll.end':
      return { ...known, poll: null };
    case 'channel.prediction.begin':
    case 'channel.prediction.progress':
      return known.prediction === open(id) ? known : { ...known, prediction: open(id) };
    case 'channel.prediction.lock':
      return { ...known, prediction: locked(id) };
    case 'channel.prediction.end':
      return { ...known, prediction: null };
    case 'channel.goal.begin':
    case 'channel.goal.progress':
      return id === null ? known : { ...known, goals: newestOf({ ...known.goals, [id]: amountOf(event) }) };
    case 'channel.goal.end': {
      const { [id ?? '']: _ended, ...goals } = known.goals;
      return { ...known, goals };
    }
    default:
      return known;
  }
}

/** Twitch lets a channel have three at once; an end that nobody told leaves one here. */
const MOST_GOALS = 16;
const newestOf = (goals: Known['goals']): Known['goals'] => {
  const all = Object.entries(goals);
  return all.length > MOST_GOALS ? Object.fromEntries(all.slice(-MOST_GOALS)) : goals;
};

const open = (id: string | null) => id && `open:${id}`;
const locked = (id: string | null) => id && `locked:${id}`;
const amountOf = (event: Members): number =>
  typeof event['current_amount'] === 'number' ? event['current_amount'] : 0;

/** Identifies an event by the state that it reports: the same for a look at Twitch's API and for EventSub. */
export const stateId = (type: string, id: string): string => `state:${type}:${id}`;

/** An event that nobody sent us, told by what Twitch shows now; its id is the same whoever asks. */
export interface Caught {
  type: string;
  /** What makes it one: ends the id of the message that it stands for. */
  id: string;
  event: Members;
}

export interface CaughtUp {
  events: Caught[];
  known: Known;
  /** What could not be asked, in words. */
  unasked: string[];
}

interface Asking {
  twitch: Twitch;
  login: TwitchLogin;
  channel_id: string;
  /** Null where nothing is known of before: what is over by now is then no news. */
  before: Known | null;
}

/**
 * What a channel's events would have told meanwhile, as far as Twitch shows it: stream, hype train, poll, prediction
 * and goals, in the shape of their events. What Twitch does not let us ask is named.
 */
export async function catchUp(asking: Asking): Promise<CaughtUp> {
  const { before } = asking;
  const found: CaughtUp = { events: [], known: before ?? NOTHING_KNOWN, unasked: [] };
  for (const [name, look] of LOOKS) {
    const data = await ask(asking, look).catch(() => null);
    if (data === null) {
      found.unasked.push(name);
      continue;
    }
    for (const caught of look.read(data, before ?? NOTHING_KNOWN, before !== null)) {
      found.events.push(caught);
      found.known = knownAfter(found.known, caught.type, caught.event);
    }
  }
  return found;
}

interface Look {
  path: string;
  query(channel_id: string): Record<string, string>;
  read(data: readonly Members[], known: Known, follows: boolean): Caught[];
}

async function ask({ twitch, login, channel_id }: Asking, { path, query }: Look): Promise<readonly Members[] | null> {
  const data = await twitch.get(login, path, query(channel_id));
  return data?.filter(isObject) ?? null;
}

const byBroadcaster = (channel_id: string) => ({ broadcaster_id: channel_id });
const newest = (channel_id: string) => ({ broadcaster_id: channel_id, first: '1' });

/** Helix writes `broadcaster_id` where events write `broadcaster_user_id`. */
function asEvent(row: Members): Members {
  const { broadcaster_id, broadcaster_login, broadcaster_name, ...rest } = row;
  return {
    ...rest,
    broadcaster_user_id: broadcaster_id,
    broadcaster_user_login: broadcaster_login,
    broadcaster_user_name: broadcaster_name,
  };
}

const LOOKS: readonly (readonly [string, Look])[] = [
  [
    'stream',
    {
      path: 'streams',
      query: (channel_id) => ({ user_id: channel_id }),
      read([stream], known) {
        const id = stream ? textAt(stream, 'id') : null;
        const caught: Caught[] = [];
        if (known.stream !== null && known.stream !== id) caught.push(offline(known.stream));
        if (stream && id !== null && id !== known.stream) {
          const { user_id, user_login, user_name, type, started_at } = stream;
          const broadcaster = {
            broadcaster_user_id: user_id,
            broadcaster_user_login: user_login,
            broadcaster_user_name: user_name,
          };
          caught.push({ type: 'stream.online', id, event: { id, ...broadcaster, type, started_at } });
        }
        return caught;
      },
    },
  ],
  [
    'hype train',
    {
      path: 'hypetrain/status',
      query: byBroadcaster,
      read([status], known) {
        const train = status?.['current'];
        const current = isObject(train) ? train : null;
        const id = current && textAt(current, 'id');
        const caught: Caught[] = [];
        if (known.hype_train !== null && known.hype_train !== id)
          caught.push({ type: 'channel.hype_train.end', id: known.hype_train, event: { id: known.hype_train } });
        if (current && id !== null)
          caught.push({ type: 'channel.hype_train.progress', id: `${id}:${idText(current['total'])}`, event: current });
        return caught;
      },
    },
  ],
  [
    'poll',
    {
      path: 'polls',
      query: newest,
      read([poll], known) {
        const [id, status] = [poll && textAt(poll, 'id'), poll && textAt(poll, 'status')];
        if (!poll || !id || !status) return [];
        const event = { ...asEvent(poll), status: status.toLowerCase() };
        const ends_at = endOf(poll);
        if (status === 'ACTIVE') {
          const votes = digest(poll['choices']);
          return [{ type: 'channel.poll.progress', id: `${id}:${votes}`, event: { ...event, ends_at } }];
        }
        // What was over before we came is told by nobody now.
        return known.poll === id ? [{ type: 'channel.poll.end', id, event }] : [];
      },
    },
  ],
  [
    'prediction',
    {
      path: 'predictions',
      query: newest,
      read([prediction], known) {
        const [id, status] = [prediction && textAt(prediction, 'id'), prediction && textAt(prediction, 'status')];
        if (!prediction || !id || !status) return [];
        const event = { ...asEvent(prediction), status: status.toLowerCase(), started_at: prediction['created_at'] };
        if (status === 'ACTIVE') {
          const bets = digest(prediction['outcomes']);
          return [{ type: 'channel.prediction.progress', id: `${id}:${bets}`, event }];
        }
        const was = known.prediction;
        if (status === 'LOCKED') {
          return was === locked(id) ? [] : [{ type: 'channel.prediction.lock', id, event }];
        }
        return was === open(id) || was === locked(id) ? [{ type: 'channel.prediction.end', id, event }] : [];
      },
    },
  ],
  [
    'goals',
    {
      path: 'goals',
      query: byBroadcaster,
      read: (goals, known) =>
        goals.flatMap((goal) => {
          const id = textAt(goal, 'id');
          if (id === null || known.goals[id] === amountOf(goal)) return [];
          const event = { ...asEvent(goal), started_at: goal['created_at'] };
          return [{ type: 'channel.goal.progress', id: `${id}:${amountOf(goal)}`, event }];
        }),
    },
  ],
];

const offline = (stream_id: string): Caught => ({ type: 'stream.offline', id: stream_id, event: {} });

function endOf(poll: Members): string | null {
  const [started, seconds] = [readTime(poll['started_at']), poll['duration']];
  return started !== null && typeof seconds === 'number' ? instantAt(started + seconds * 1000) : null;
}

/** Votes or points as a short text, so that the same state is told once. */
function digest(list: unknown): string {
  if (!Array.isArray(list)) return '';
  return list
    .map((one: unknown) => (isObject(one) ? (idText(one['votes'] ?? one['channel_points']) ?? '') : ''))
    .join('-');
}
