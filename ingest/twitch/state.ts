import { z } from 'zod';
import type { Json } from '../../lib/json/json';
import type { Twitch, TwitchLogin } from '../../vendors/twitch/port';
import { instantAt } from '../runtime/parse/times';
import { readSeconds, readTime } from '../../lib/time/vendor-times';
import { idText, keptId } from '../runtime/webhook/webhook';
import { isObject, type Members } from './frame';
import { Holders } from './handover/readings';
import { textAt } from './people';

/** Present state of a channel from its events; ids alone. */
const Known = z.object({
  /** Id of the broadcast; null when offline. */
  stream: z.string().nullable(),
  hype_train: z.string().nullable(),
  poll: z.string().nullable(),
  /** Id of the prediction that is open or locked, prefixed by its state. */
  prediction: z.string().nullable(),
  /** Amounts by the id of the goal. */
  goals: z.record(z.string(), z.number()),
});
export type Known = z.output<typeof Known>;

export const NOTHING_KNOWN: Known = { stream: null, hype_train: null, poll: null, prediction: null, goals: {} };

/** State of a session for the next one, of this process or another. */
const SessionState = Holders.extend({
  session_id: z.string(),
  known: Known,
  /** Number of the conduit's last handled gap; absent where no conduit received the channel. */
  gaps: z.number().optional(),
});
export type SessionState = z.output<typeof SessionState>;

/** Null for a state that this release cannot read. */
export const readState = (state: Json): SessionState | null => SessionState.safeParse(state).data ?? null;

/** State after an event of that type; the same object when the event does not change it. */
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

/** Maximum goals kept: Twitch allows three at once, and a missed end leaves one here. */
const MAX_GOALS = 16;
const newestOf = (goals: Known['goals']): Known['goals'] => {
  const all = Object.entries(goals);
  return all.length > MAX_GOALS ? Object.fromEntries(all.slice(-MAX_GOALS)) : goals;
};

const open = (id: string | null) => id && `open:${id}`;
const locked = (id: string | null) => id && `locked:${id}`;
const amountOf = (event: Members): number =>
  typeof event['current_amount'] === 'number' ? event['current_amount'] : 0;

/** Identifies an event by the state that it reports: equal for Twitch's API and for EventSub. */
export const stateId = (type: string, id: string): string => `state:${type}:${id}`;

/** A missed event, derived from Twitch's present state; its id is equal whichever process derives it. */
export interface Caught {
  type: string;
  /** Suffix of its message id, which identifies it. */
  id: string;
  event: Members;
}

export interface CaughtUp {
  events: Caught[];
  known: Known;
  /** Parts that could not be read, in words. */
  unasked: string[];
}

interface Asking {
  twitch: Twitch;
  login: TwitchLogin;
  channel_id: string;
  /** Null without a known earlier state: ended things are then not reported. */
  before: Known | null;
}

/**
 * Derives the missed events of a channel, as far as Twitch shows them: stream, hype train, poll, prediction and goals,
 * in the shape of their events. Parts that Twitch does not let us read are named.
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
        if (stream && id !== null && id !== known.stream)
          caught.push({ type: 'stream.online', id, event: onlineEvent(stream) });
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
        // A poll that ended before the known state is not reported.
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

/** A stream of Twitch's list in the form of its event. */
export const onlineEvent = ({ id, user_id, user_login, user_name, type, started_at }: Members): Members => ({
  id,
  broadcaster_user_id: user_id,
  broadcaster_user_login: user_login,
  broadcaster_user_name: user_name,
  type,
  started_at,
});

/** Twitch's event names no stream; this one does, because it ends that stream alone. */
const offline = (id: string): Caught => ({ type: 'stream.offline', id, event: { id } });

function endOf(poll: Members): string | null {
  const [started, seconds] = [readTime(poll['started_at']), readSeconds(poll['duration'])];
  return started !== null && seconds !== null ? instantAt(started + seconds * 1000) : null;
}

/** Votes or points as a short text, so that an unchanged state is reported once. */
function digest(list: unknown): string {
  if (!Array.isArray(list)) return '';
  return list
    .map((one: unknown) => (isObject(one) ? (idText(one['votes'] ?? one['channel_points']) ?? '') : ''))
    .join('-');
}
