import { type ChatDraft, chatRecordText, chatRecordType, personsOf } from '../../domain/chat-messages';
import { TOPICS } from '../../domain/records';
import type { Platform, Vendor } from '../../domain/vendors';
import type { LinkedConnection, Received } from './adapter';
import { readJson, storableJson } from './text';
import { type DraftRecord, type Outcome, type Owner, park, subjectOf } from './webhook';

/**
 * A record on `chat-events`: a message is about its author, or nobody; an act about whom the draft names first. The
 * others are named, too. `raw` is the vendor's JSON, which may name more: `others`, by their ids.
 */
export function chatRecord(
  draft: ChatDraft,
  raw: string,
  rest: Pick<DraftRecord, 'owner' | 'external_id' | 'same_raw' | 'former_id' | 'occurred_at'>,
  others: Iterable<string> = [],
): DraftRecord {
  const named = personsOf(draft);
  const about = draft.kind === 'message' ? draft.author?.id : named[0];
  return {
    ...rest,
    topic: TOPICS.chat_events,
    type: chatRecordType(draft),
    platform: draft.platform,
    ...people(draft.platform, [about, ...named, ...others]),
    raw: chatRecordText(draft, raw),
  };
}

/**
 * Whose a record is (the first id), and everybody else whom it names, by the vendor's ids. Null and 0 stand for nobody.
 */
export function people(
  vendor: Vendor,
  [about, ...others]: readonly unknown[],
): Pick<DraftRecord, 'subject' | 'subjects'> {
  const subject = subjectOf(vendor, about);
  let named: Set<string> | undefined;
  for (const id of others) {
    const one = subjectOf(vendor, id);
    if (one !== null && one !== subject) (named ??= new Set()).add(one);
  }
  return named === undefined ? { subject } : { subject, subjects: [...named] };
}

/** Whose the records of a connection are. */
export const ownerOf = (platform: Platform, { account_id, channel_id }: LinkedConnection): Owner =>
  account_id === null ? { kind: 'channel', platform, channel_id } : { kind: 'account', account_id };

/** JSON that came over a connection, read by `read` from what it says and its storable text; or why it is parked. */
export function readReceived({ text }: Received, read: (value: unknown, raw: string) => Outcome): Outcome {
  const raw = storableJson(text);
  const json = readJson(raw);
  return json.ok ? read(json.value, raw) : park(json.reason, json.detail);
}
