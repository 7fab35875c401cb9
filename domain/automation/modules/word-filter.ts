import { RE2JS, RE2JSException } from 're2js';
import { foldLookAlikes, foldText, type FoldedText } from './folded-text';
import { type Span, wordList } from './word-list';

/** Words, phrases and patterns that a chat shall not show. */
export interface FilteredWords {
  words?: readonly string[] | undefined;
  patterns?: readonly string[] | undefined;
}

/** Filtered words, compiled. */
export interface WordFilter {
  matches(text: string): boolean;
  /** The text with `***` in the places of filtered words. */
  mask(text: string): string;
}

const MASK = '***';
/** Longest part of a text that is searched, in UTF-16 units. */
const SEARCHED = 4_000;
/** Largest program of all patterns of an account: it bounds the time for a line. */
const MAX_PROGRAM = 10_000;
/** Most work of the searches for patterns in a text, in steps of a program on a unit: each may read the whole rest. */
const MAX_STEPS = 8_000_000;
/** In such a text no form differs but by case. */
const ASCII = /^[\0-\x7f]*$/;

/** A text to search, and how its places are found in the original. */
interface Form {
  text: string;
  place(span: Span): Span;
}

/** @throws SyntaxError when a pattern is invalid, matches an empty text, or when all are too large together */
export function compileWords({ words = [], patterns = [] }: FilteredWords): WordFilter {
  const listed = [
    wordList(words),
    wordList(words.map((word) => foldText(word).text)),
    wordList(words.map((word) => foldLookAlikes(word).text)),
  ];
  const pattern = patternOf(patterns);

  function* spansIn(text: string): Generator<Span> {
    const forms = [written(text), folded(foldText(text)), folded(foldLookAlikes(text))];
    for (const [at, form] of forms.entries()) for (const span of listed[at]!(form.text)) yield form.place(span);
    if (pattern === null) return;
    const differing = ASCII.test(text) ? forms.slice(0, 1) : forms;
    for (const form of differing) for (const span of matchesIn(pattern, form.text)) yield form.place(span);
  }
  const spansOf = (text: string) => spansIn(text.slice(0, SEARCHED));

  return {
    matches: (text) => spansOf(text).next().done === false,
    mask: (text) => masked(text, [...spansOf(text)]),
  };
}

/** Spans of a pattern; the last one is the rest of a text that costs more than {@link MAX_STEPS}. */
function* matchesIn(pattern: RE2JS, text: string): Generator<Span> {
  const matcher = pattern.matcher(text);
  const size = pattern.programSize();
  let steps = 0;
  while (matcher.find()) {
    const [start, end] = [matcher.start(), matcher.end()];
    steps += size * (text.length - end);
    if (steps > MAX_STEPS) return yield [start, text.length];
    if (end > start) yield [start, end];
  }
}

const written = (text: string): Form => ({ text, place: (span) => span });
const folded = ({ text, places }: FoldedText): Form => ({
  text,
  place: ([start, end]) => [places[start]![0], places[end - 1]![1]],
});

/** Pattern of all patterns; null without any. @throws SyntaxError */
function patternOf(patterns: readonly string[]): RE2JS | null {
  if (patterns.length === 0) return null;
  let size = 0;
  for (const pattern of patterns) {
    const one = compile(`(?:${pattern})`, pattern);
    if (one.matcher('').matches()) throw new SyntaxError(`the pattern ${pattern} matches an empty text`);
    size += one.programSize();
    if (size > MAX_PROGRAM) throw new SyntaxError('the patterns are too large together');
  }
  return compile(patterns.map((pattern) => `(?:${pattern})`).join('|'), patterns.join(', '));
}

function compile(source: string, pattern: string): RE2JS {
  try {
    return RE2JS.compile(source, RE2JS.CASE_INSENSITIVE);
  } catch (error) {
    if (!(error instanceof RE2JSException)) throw error;
    throw new SyntaxError(`the pattern ${pattern} is not valid`, { cause: error });
  }
}

function masked(text: string, spans: Span[]): string {
  spans.sort(([one], [other]) => one - other);
  let shown = '';
  let at = 0;
  for (const [start, end] of spans) {
    if (end <= at) continue;
    if (start >= at) shown += text.slice(at, start) + MASK;
    at = end;
  }
  return shown + text.slice(at);
}
