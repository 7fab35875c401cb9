import { type ChatDraft, chatRecordText, chatRecordType, personsOf } from '../../../domain/chat/chat-messages';
import { TOPICS } from '../../../domain/common/records';
import type { Platform, Vendor } from '../../../domain/common/vendors';
import type { LinkedConnection, Received } from '../connection/adapter';
import { readJson, storableJson } from './text';
import { type DraftRecord, type Outcome, type Owner, park, subjectOf } from '../webhook/webhook';

/**
 * Makes a record on `chat-events`: a message is about its author, or about no person; an act about the first person in
 * the draft. The others are named, too. `raw` is the vendor's JSON, which may name more: `others`, by their ids.
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
    ...(draft.kind === 'message' && { message: { draft, raw } }),
  };
}

/** Subject of a record (the first id), and all other persons in it, by the vendor's ids. Null and 0 mean no person. */
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

/** Owner of a connection's records. */
export const ownerOf = (platform: Platform, { account_id, channel_id }: LinkedConnection): Owner =>
  account_id === null ? { kind: 'channel', platform, channel_id } : { kind: 'account', account_id };

/** Parses JSON from a connection and passes the value and its storable text to `read`; a parse failure is parked. */
export function readReceived({ text }: Received, read: (value: unknown, raw: string) => Outcome): Outcome {
  const raw = storableJson(text);
  const json = readJson(raw);
  return json.ok ? read(json.value, raw) : park(json.reason, json.detail);
}
