import { type ChatMessageDraft, type ChatPart, chatRecordText } from '../../../domain/chat/chat-messages';
import type { ChannelEmotes, KnownPictures } from '../../../services/chat/emotes';
import { storageLimitViolation } from './storage-limits';
import type { DraftRecord } from '../webhook/webhook';

/** A chat message of a record before its text is made. */
export interface DraftedMessage {
  draft: ChatMessageDraft;
  /** The vendor's JSON. */
  raw: string;
}

/** Emotes of third parties stand between blanks; a native emote of YouTube is `:name:` anywhere. */
const WORDS = /:[\w-]{1,98}:|\S+/g;

/**
 * Adds emotes of third parties and pictures of badges to a chat message, as far as they are in memory: a record never
 * waits for a vendor. All other records stay as they are.
 */
export function withPictures(record: DraftRecord, emotes: Pick<ChannelEmotes, 'known'> | undefined): DraftRecord {
  if (record.message === undefined || emotes === undefined) return record;
  const { draft, raw } = record.message;
  const known = emotes.known(draft.platform, draft.channel_id);
  if (!known.any) return record;
  const parts = draft.parts.flatMap((part) => partsOf(part, known));
  const badges = draft.badges.map((badge) => ({
    ...badge,
    image_url: badge.image_url ?? known.badge(badge.kind, badge.id),
  }));
  const changed =
    parts.some((part, index) => part !== draft.parts[index]) ||
    badges.some(({ image_url }, index) => image_url !== draft.badges[index]!.image_url);
  if (!changed) return record;
  const complete = { ...record, raw: chatRecordText({ ...draft, parts, badges }, raw) };
  return storageLimitViolation([complete]) === null ? complete : record;
}

function partsOf(part: ChatPart, known: KnownPictures): ChatPart[] {
  if (part.type === 'text') return wordsOf(part, known);
  if (part.type !== 'emote' || part.url !== null) return [part];
  const found = known.emote(part.id);
  if (found?.provider !== part.provider) return [part];
  return [{ ...part, url: found.url, animated: found.animated }];
}

function wordsOf(part: ChatPart & { type: 'text' }, known: KnownPictures): ChatPart[] {
  const parts: ChatPart[] = [];
  let from = 0;
  for (const { 0: text, index } of part.text.matchAll(WORDS)) {
    const emote = known.emote(text);
    if (emote === undefined) continue;
    if (index > from) parts.push({ type: 'text', text: part.text.slice(from, index) });
    const { id, provider, url, animated } = emote;
    parts.push({ type: 'emote', text, id, provider, url, animated });
    from = index + text.length;
  }
  if (parts.length === 0) return [part];
  if (from < part.text.length) parts.push({ type: 'text', text: part.text.slice(from) });
  return parts;
}
