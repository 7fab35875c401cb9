import { LRUCache } from 'lru-cache';
import { type Chatter, chattersAreKept, knownChatters } from '../../../views/chat/chatters';
import { TOPICS } from '../../../domain/common/records';
import type { Queryable } from '../../../engines/postgres/port';
import type { RecordLog } from '../../../engines/records/port';
import type { SubjectKeys } from '../../../privacy/subject-keys/port';
import { failureKind } from '../../../kernel/failures';
import { envelopeOf } from './envelope';
import type { DraftRecord } from '../webhook/webhook';

/** A message whose author may be new to the account's chat. */
export interface FirstMessageCandidate {
  account_id: string;
  message: DraftRecord;
  /** Unix milliseconds. */
  received_at: number;
  trace: string | null;
}

export interface FirstMessages {
  /**
   * Stores the event of each author's first message, before the message itself: a process killed in between repeats it,
   * and the event log counts it once.
   * @returns a callback for the time when the messages are durable, too
   */
  announce(candidates: readonly FirstMessageCandidate[]): Promise<() => void>;
}

export interface FirstMessagesDeps {
  db: Queryable;
  records: Pick<RecordLog, 'append'>;
  subject_keys: Pick<SubjectKeys, 'forWriting' | 'atHand'>;
}

/** Maximum cached authors: some 15 MiB. */
const MAX_REMEMBERED = 100_000;

/** Returns the message when it has an event of its author's first message. */
export const candidatesOf = (
  message: DraftRecord,
  rest: Omit<FirstMessageCandidate, 'message'>,
): readonly FirstMessageCandidate[] => (message.first_message === undefined ? NO_CANDIDATES : [{ ...rest, message }]);
const NO_CANDIDATES: readonly FirstMessageCandidate[] = [];

/**
 * Finds first messages in the chats of accounts by the chatters of the read model (which may lag) and the authors that
 * this process has seen. The event's id derives from the author's key, so that it counts once whichever process finds
 * it.
 */
export function createFirstMessages({ db, records, subject_keys }: FirstMessagesDeps): FirstMessages {
  const remembered = new LRUCache<string, true>({ max: MAX_REMEMBERED });
  let kept = false;

  return {
    async announce(candidates) {
      if (candidates.length === 0) return NOTHING;
      const unknown = await notRemembered(candidates);
      if (unknown.size === 0 || !(kept ||= await chattersAreKept(db))) return NOTHING;
      const chatters = [...unknown.values()].map(({ chatter }) => chatter);
      for (const known of await knownChatters(db, chatters)) {
        remembered.set(keyOf(known), true);
        unknown.delete(keyOf(known));
      }
      if (unknown.size > 0) await append([...unknown.values()]);
      return () => {
        for (const key of unknown.keys()) remembered.set(key, true);
      };
    },
  };

  /** Returns the first candidate of each author not cached in this process. */
  async function notRemembered(candidates: readonly FirstMessageCandidate[]): Promise<Map<string, Unknown>> {
    const subjects = candidates.map(({ message }) => message.subject!);
    const keys = subject_keys.atHand?.(subjects) ?? (await subject_keys.forWriting(subjects));
    const unknown = new Map<string, Unknown>();
    for (const candidate of candidates) {
      const { account_id, message } = candidate;
      const chatter = { account_id, person_key: keys.get(message.subject!)!.key_id };
      const key = keyOf(chatter);
      if (!remembered.get(key) && !unknown.has(key)) unknown.set(key, { candidate, chatter });
    }
    return unknown;
  }

  async function append(firsts: readonly Unknown[]): Promise<void> {
    try {
      await records.append(TOPICS.platform_events, firsts.map(eventOf));
    } catch (error) {
      if (failureKind(error) !== 'data') throw error;
      // An unstorable event is parked with its message, and checked again when that is retried.
      if (firsts.length > 1) for (const first of firsts) await append([first]);
    }
  }
}

interface Unknown {
  candidate: FirstMessageCandidate;
  chatter: Chatter;
}

const NOTHING = () => undefined;
const keyOf = ({ account_id, person_key }: Chatter): string => `${account_id.toLowerCase()} ${person_key}`;

function eventOf({ candidate, chatter }: Unknown) {
  const { account_id, message, received_at, trace } = candidate;
  const event = message.first_message!();
  const external_id = `${event.platform}:first_message:${chatter.person_key}`;
  return envelopeOf({ ...event, external_id }, account_id, received_at, trace);
}
