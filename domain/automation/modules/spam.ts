import type { ChatPart } from '../../chat/chat-messages';

/** Limits of a line; an absent one is off. */
export interface SpamLimits {
  max_repeats?: number | undefined;
  max_caps_percent?: number | undefined;
  max_symbols_percent?: number | undefined;
  max_emotes?: number | undefined;
}

/** Characters from which on percentages count. */
const MIN_CHARACTERS = 10;

/** Whether a line is beyond a limit. Emotes count as emotes alone. */
export function isSpam(parts: readonly ChatPart[], limits: SpamLimits): boolean {
  const emotes = parts.filter(({ type }) => type === 'emote').length;
  const text = parts.map((part) => (part.type === 'emote' ? ' ' : part.text)).join('');
  const { max_repeats, max_caps_percent, max_symbols_percent, max_emotes } = limits;
  return (
    isOver(emotes, max_emotes) ||
    (max_repeats !== undefined && repeats(text) > max_repeats) ||
    isOver(percentOf(text, /[\p{Lu}\p{Lt}]/gu), max_caps_percent) ||
    isOver(percentOf(text, /[\p{P}\p{S}]/gu), max_symbols_percent)
  );
}

const isOver = (value: number, most: number | undefined): boolean => most !== undefined && value > most;

/** Share of such characters in a text without blanks; 0 of a short text. */
function percentOf(text: string, kind: RegExp): number {
  const characters = [...text.replace(/\s+/gu, '')].length;
  return characters < MIN_CHARACTERS ? 0 : (100 * [...text.matchAll(kind)].length) / characters;
}

/** The longest run of one character, or of one word, without case. */
function repeats(text: string): number {
  const lower = text.toLowerCase();
  const words = lower.split(/\s+/u).filter((word) => word !== '');
  return Math.max(longestRun(words), ...words.map((word) => longestRun([...word])));
}

function longestRun(all: readonly string[]): number {
  let longest = 0;
  let run = 0;
  all.forEach((one, at) => {
    run = one === all[at - 1] ? run + 1 : 1;
    longest = Math.max(longest, run);
  });
  return longest;
}
