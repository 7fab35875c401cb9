import { readSeconds, readTime } from '../../../lib/time/vendor-times';
import type { Twitch, TwitchLogin } from '../../../vendors/twitch/port';
import { instantAt } from '../../runtime/parse/times';
import { idText } from '../../runtime/webhook/webhook';
import { isObject, type Members } from '../frame';
import { textAt } from '../people';
import { amountOf, endsOf, isOver, type Known, knownAfterLook, locked, NOTHING_KNOWN, open } from './known';

/** Identifies an event by the state that it reports: equal for Twitch's API and for EventSub. */
export const stateId = (type: string, id: string): string => `state:${type}:${id}`;

/**
 * Identifies an end that a look has inferred, by the number of such ends of that thing: the report of the end, and the
 * next inferred end, are other events.
 */
const lookedEnd = (known: Known, kind: string, id: string): string => `${id}:look-${endsOf(known, kind, id) + 1}`;

/** Number of the inferred end that an external id identifies; null for any other. */
export function inferredEnd(external_id: string | null): number | null {
  const number = /:look-(\d+)$/.exec(external_id ?? '')?.[1];
  return number === undefined ? null : Number(number);
}

/** Identifies what a look shows of a thing: after an inferred end it is another event than before. */
function lookedId(known: Known, kind: string, id: string, ...figures: readonly string[]): string {
  const ends = endsOf(known, kind, id);
  return [id, ...figures, ...(ends > 0 ? [`again-${ends}`] : [])].join(':');
}

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
      found.known = knownAfterLook(found.known, caught.type, caught.event);
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
        // A list that still shows an ended stream is older than the report of the end.
        if (stream && isOver(known, 'stream.online', stream)) return [];
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
        if (current && isOver(known, 'channel.hype_train.progress', current)) return [];
        const train_id = known.hype_train;
        if (train_id !== null && train_id !== id) {
          const end_id = lookedEnd(known, 'hype_train', train_id);
          caught.push({ type: 'channel.hype_train.end', id: end_id, event: { id: train_id } });
        }
        if (current && id !== null) {
          const progress_id = lookedId(known, 'hype_train', id, String(idText(current['total'])));
          caught.push({ type: 'channel.hype_train.progress', id: progress_id, event: current });
        }
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
        if (!poll || !id || !status || isOver(known, 'channel.poll.progress', poll)) return [];
        const event = { ...asEvent(poll), status: status.toLowerCase() };
        const ends_at = endOf(poll);
        if (status === 'ACTIVE') {
          const progress_id = lookedId(known, 'poll', id, digest(poll['choices']));
          return [{ type: 'channel.poll.progress', id: progress_id, event: { ...event, ends_at } }];
        }
        // A poll that ended before the known state is not reported.
        return known.poll === id ? [{ type: 'channel.poll.end', id: lookedEnd(known, 'poll', id), event }] : [];
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
        if (!prediction || !id || !status || isOver(known, 'channel.prediction.progress', prediction)) return [];
        const event = { ...asEvent(prediction), status: status.toLowerCase(), started_at: prediction['created_at'] };
        if (status === 'ACTIVE') {
          const progress_id = lookedId(known, 'prediction', id, digest(prediction['outcomes']));
          return [{ type: 'channel.prediction.progress', id: progress_id, event }];
        }
        const was = known.prediction;
        if (status === 'LOCKED') {
          const lock_id = lookedId(known, 'prediction', id);
          return was === locked(id) ? [] : [{ type: 'channel.prediction.lock', id: lock_id, event }];
        }
        if (was !== open(id) && was !== locked(id)) return [];
        return [{ type: 'channel.prediction.end', id: lookedEnd(known, 'prediction', id), event }];
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
          if (isOver(known, 'channel.goal.progress', goal)) return [];
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

/** Twitch's own event names no stream. An inferred end ends the named stream alone. */
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
