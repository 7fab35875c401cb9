import type { ChatPart } from './chat-messages';

/** Web addresses with a scheme or `www.`, and `@name`; of a mention the character before it is not part of a word. */
const NOTABLE =
  /(?:https?:\/\/|www\.)[^\s<>"'\u3000]{2,2000}|(?<![\p{L}\p{N}_@./])@[\p{L}\p{N}_][\p{L}\p{N}_.-]{0,99}/giu;
/** Punctuation after an address that does not belong to it. */
const AFTER_ADDRESS = /[.,;:!?)\]}…]+$/u;
const AFTER_NAME = /[.-]+$/u;

/** A piece of a message that the platform does not take apart: its text, links and mentions, in their order. */
export function textParts(text: string): ChatPart[] {
  // Fast path: most messages have neither mentions nor links.
  if (!/@|:\/\/|www\./i.test(text)) return text === '' ? [] : [{ type: 'text', text }];
  const parts: ChatPart[] = [];
  let from = 0;
  const plain = (to: number) => {
    if (to > from) parts.push({ type: 'text', text: text.slice(from, to) });
  };
  for (const found of text.matchAll(NOTABLE)) {
    const part = found[0].startsWith('@') ? mention(found[0]) : link(found[0]);
    if (part === null) continue;
    plain(found.index);
    parts.push(part);
    from = found.index + part.text.length;
  }
  plain(text.length);
  return parts;
}

function mention(found: string): ChatPart {
  const text = found.replace(AFTER_NAME, '');
  return { type: 'mention', text, user_id: null, username: text.slice(1) };
}

function link(found: string): ChatPart | null {
  const text = found.replace(AFTER_ADDRESS, '');
  const url = /^www\./i.test(text) ? `https://${text}` : text;
  return URL.canParse(url) ? { type: 'link', text, url } : null;
}

/** The text of all parts, joined. */
export const textOfParts = (parts: readonly ChatPart[]): string => parts.map(({ text }) => text).join('');
