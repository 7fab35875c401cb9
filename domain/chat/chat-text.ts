import type { ChatPart } from './chat-messages';
import { findLinks } from './links';

/** `@name`; the character before it is not part of a word. */
const MENTION = /(?<![\p{L}\p{N}_@./])@[\p{L}\p{N}_][\p{L}\p{N}_.-]{0,99}/gu;
const AFTER_NAME = /[.-]+$/u;

interface TextMatch {
  index: number;
  part: ChatPart;
}

/** A piece of a message that the platform does not take apart: its text, links and mentions, in their order. */
export function textParts(text: string): ChatPart[] {
  // Fast path: most messages have neither mentions nor links.
  if (!/@|:\/\/|www\./i.test(text)) return text === '' ? [] : [{ type: 'text', text }];
  const parts: ChatPart[] = [];
  let from = 0;
  const plain = (to: number) => {
    if (to > from) parts.push({ type: 'text', text: text.slice(from, to) });
  };
  const links = findLinks(text).map(({ index, ...link }): TextMatch => ({ index, part: { type: 'link', ...link } }));
  const mentions = [...text.matchAll(MENTION)].map(({ index, 0: name }): TextMatch => ({ index, part: mention(name) }));
  for (const { index, part } of [...links, ...mentions].sort((a, b) => a.index - b.index)) {
    if (index < from) continue;
    plain(index);
    parts.push(part);
    from = index + part.text.length;
  }
  plain(text.length);
  return parts;
}

function mention(found: string): ChatPart {
  const text = found.replace(AFTER_NAME, '');
  return { type: 'mention', text, user_id: null, username: text.slice(1) };
}

/** The text of all parts, joined. */
export const textOfParts = (parts: readonly ChatPart[]): string => parts.map(({ text }) => text).join('');
