import { z } from 'zod';
import { isBefore, readInstant } from '../../runtime/parse/times';
import { keptId } from '../../runtime/webhook/webhook';
import type { Members } from '../frame';

/** Present state of a channel from its events; ids alone. */
export const Known = z.object({
  /** Id of the broadcast; null when offline. */
  stream: z.string().nullable(),
  /** Message time of the newest report of a stream's begin or end. */
  stream_at: z.string().nullable().default(null),
  hype_train: z.string().nullable(),
  poll: z.string().nullable(),
  /** Id of the prediction that is open or locked, prefixed by its state. */
  prediction: z.string().nullable(),
  /** Amounts by the id of the goal. */
  goals: z.record(z.string(), z.number()),
  /** {@link keyOf} of things whose end was reported, the newest last: looks do not undo it. */
  ended: z.array(z.string()).default([]),
  /** Number of ends that looks have inferred, by {@link keyOf}: the thing may be seen, and end, again. */
  inferred: z.record(z.string(), z.number()).default({}),
});
export type Known = z.output<typeof Known>;

export const NOTHING_KNOWN: Known = {
  ...{ stream: null, stream_at: null, hype_train: null, poll: null, prediction: null, goals: {} },
  ...{ ended: [], inferred: {} },
};

const KIND = /^(?:channel\.)?(stream|hype_train|poll|prediction|goal)\.(begin|progress|lock|end|online|offline)$/;
const isEnd = (phase: string | undefined): boolean => phase === 'end' || phase === 'offline';

/** Kind and id of what an event is about. */
const keyOf = (kind: string, id: string): string => `${kind}:${id}`;

/** Whether the end of what the event is about was reported. */
export function isOver(known: Known | null, type: string, event: Members): boolean {
  const [, kind] = KIND.exec(type) ?? [];
  const id = keptId(event['id']);
  return known !== null && kind !== undefined && id !== null && known.ended.includes(keyOf(kind, id));
}

/**
 * State after a report of that type; the same object when the report does not change it. A report of a stream's begin
 * or end that was sent before the newest one changes nothing.
 */
export function knownAfter(known: Known, type: string, event: Members, sent_at: unknown = null): Known {
  if (!type.startsWith('stream.')) return afterReport(known, type, event);
  if (isBefore(sent_at, known.stream_at)) return known;
  return afterReport({ ...known, stream_at: readInstant(sent_at) ?? known.stream_at }, type, event);
}

function afterReport(known: Known, type: string, event: Members): Known {
  const [, kind, phase] = KIND.exec(type) ?? [];
  const id = type === 'stream.offline' ? known.stream : keptId(event['id']);
  if (kind === undefined || id === null) return changed(known, type, event);
  const key = keyOf(kind, id);
  if (isEnd(phase)) {
    const { [key]: _ends, ...inferred } = known.inferred;
    const ended = [...known.ended.filter((one) => one !== key), key].slice(-MAX_KEPT);
    return { ...changed(known, type, event), ended, inferred };
  }
  if (!known.ended.includes(key)) return changed(known, type, event);
  // Twitch keeps the id of a stream that resumes soon after its end; everything else ends once.
  return type === 'stream.online'
    ? { ...changed(known, type, event), ended: known.ended.filter((one) => one !== key) }
    : known;
}

/**
 * State after an event that follows from a look. An end is provisional, and counted: `ends` is its number, by default
 * the next one.
 */
export function knownAfterLook(known: Known, type: string, event: Members, ends?: number): Known {
  const [, kind, phase] = KIND.exec(type) ?? [];
  const id = keptId(event['id']);
  const after = changed(known, type, event);
  // The channel status keeps the ends of streams.
  if (kind === undefined || kind === 'stream' || id === null || !isEnd(phase)) return after;
  const key = keyOf(kind, id);
  return { ...after, inferred: newestOf({ ...after.inferred, [key]: ends ?? endsOf(known, kind, id) + 1 }) };
}

/** Number of ends of a thing that looks have inferred. */
export const endsOf = ({ inferred }: Known, kind: string, id: string): number => inferred[keyOf(kind, id)] ?? 0;

function changed(known: Known, type: string, event: Members): Known {
  const id = keptId(event['id']);
  switch (type) {
    case 'stream.online':
      return { ...known, stream: id };
    case 'stream.offline':
      return id === null || known.stream === id ? { ...known, stream: null } : known;
    case 'channel.hype_train.begin':
    case 'channel.hype_train.progress':
      return known.hype_train === id ? known : { ...known, hype_train: id };
    case 'channel.hype_train.end':
      return id === null || known.hype_train === id ? { ...known, hype_train: null } : known;
    case 'channel.poll.begin':
    case 'channel.poll.progress':
      return known.poll === id ? known : { ...known, poll: id };
    case 'channel.poll.end':
      return id === null || known.poll === id ? { ...known, poll: null } : known;
    case 'channel.prediction.begin':
    case 'channel.prediction.progress':
      return known.prediction === open(id) ? known : { ...known, prediction: open(id) };
    case 'channel.prediction.lock':
      return { ...known, prediction: locked(id) };
    case 'channel.prediction.end':
      return id === null || known.prediction === open(id) || known.prediction === locked(id)
        ? { ...known, prediction: null }
        : known;
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

/** Maximum entries of a list: Twitch allows three goals at once, and a missed end leaves one here. */
const MAX_KEPT = 16;
const newestOf = (numbers: Readonly<Record<string, number>>): Record<string, number> =>
  Object.fromEntries(Object.entries(numbers).slice(-MAX_KEPT));

export const open = (id: string | null) => id && `open:${id}`;
export const locked = (id: string | null) => id && `locked:${id}`;
export const amountOf = (event: Members): number =>
  typeof event['current_amount'] === 'number' ? event['current_amount'] : 0;
