/** Start and end in a text, in UTF-16 units. */
export type Span = readonly [start: number, end: number];

const PIECE = /\s+|\S/gu;
const WORD = /[\p{L}\p{M}\p{N}_]/u;

/** A text without case, with one blank for each run of blanks. */
interface Compared {
  text: string;
  /** By unit: its place in the original. */
  places: Span[];
  /** By unit: whether it belongs to a word. */
  in_word: boolean[];
}

/**
 * Spans of whole words and phrases in texts: at each place the longest one. The time for a text is bounded by its
 * length times that of the longest word.
 */
export function wordList(words: readonly string[]): (text: string) => Iterable<Span> {
  const keys = words.map((word) => compared(word).text.trim()).filter((key) => key !== '');
  const sorted = [...new Set(keys)].sort((one, other) => (one < other ? -1 : 1));
  return function* spansIn(text) {
    if (sorted.length === 0) return;
    const within = compared(text);
    for (let start = 0; start < within.text.length; start += 1) {
      const end = endOfLongest(sorted, within, start);
      if (end > start) yield [within.places[start]![0], within.places[end - 1]![1]];
    }
  };
}

function compared(text: string): Compared {
  let folded = '';
  const places: Span[] = [];
  const in_word: boolean[] = [];
  for (const { 0: piece, index } of text.matchAll(PIECE)) {
    const part = piece.trim() === '' ? ' ' : withoutCase(piece);
    folded += part;
    for (let unit = 0; unit < part.length; unit += 1) {
      places.push([index, index + piece.length]);
      in_word.push(WORD.test(piece));
    }
  }
  return { text: folded, places, in_word };
}

/** Letters with several small forms are one. */
function withoutCase(character: string): string {
  const upper = character.toUpperCase();
  return (upper.length === character.length ? upper : character).toLowerCase();
}

/** End of the longest of the sorted words that begins there; `start` without one. */
function endOfLongest(sorted: readonly string[], { text, in_word }: Compared, start: number): number {
  const isBetween = (at: number) => at > 0 && in_word[at - 1] === true && in_word[at] === true;
  let longest = start;
  if (isBetween(start)) return longest;
  let [from, to] = [0, sorted.length];
  for (let at = start; at < text.length && from < to; at += 1) {
    const unit = text.charCodeAt(at);
    const unitOf = (word: string) => (at - start < word.length ? word.charCodeAt(at - start) : -1);
    from = firstFrom(sorted, [from, to], (word) => unitOf(word) >= unit);
    to = firstFrom(sorted, [from, to], (word) => unitOf(word) > unit);
    if (from < to && sorted[from]!.length === at - start + 1 && !isBetween(at + 1)) longest = at + 1;
  }
  return longest;
}

/** Index of the first of these words for which the condition holds; it holds for all later ones. */
function firstFrom(sorted: readonly string[], [from, to]: Span, holds: (word: string) => boolean): number {
  let [low, high] = [from, to];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (holds(sorted[middle]!)) high = middle;
    else low = middle + 1;
  }
  return low;
}
