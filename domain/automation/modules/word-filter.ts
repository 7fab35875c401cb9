import { RE2JS, RE2JSException } from 're2js';
import { foldLookAlikes, foldText, type FoldedText } from './folded-text';

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

type Span = readonly [start: number, end: number];
/** A text to search, and how its places are found in the original. */
interface Form {
  text: string;
  place(span: Span): Span;
}

/** @throws SyntaxError when a pattern is invalid, matches an empty text, or when all are too large together */
export function compileWords({ words = [], patterns = [] }: FilteredWords): WordFilter {
  const searched = [
    wordsOf(words),
    wordsOf(words.map((word) => foldText(word).text)),
    wordsOf(words.map((word) => foldLookAlikes(word).text)),
  ];
  const pattern = patternOf(patterns);

  function* spansIn(text: string): Generator<Span> {
    const forms = [written(text), folded(foldText(text)), folded(foldLookAlikes(text))];
    for (const [at, form] of forms.entries()) {
      const expression = searched[at];
      if (expression) for (const found of form.text.matchAll(expression)) yield form.place(spanOf(found));
      if (pattern === null) continue;
      const matcher = pattern.matcher(form.text);
      while (matcher.find()) if (matcher.end() > matcher.start()) yield form.place([matcher.start(), matcher.end()]);
    }
  }
  const spansOf = (text: string) => spansIn(text.slice(0, SEARCHED));

  return {
    matches: (text) => spansOf(text).next().done === false,
    mask: (text) => masked(text, [...spansOf(text)]),
  };
}

const spanOf = ({ 0: found, index }: RegExpExecArray): Span => [index, index + found.length];
const written = (text: string): Form => ({ text, place: (span) => span });
const folded = ({ text, places }: FoldedText): Form => ({
  text,
  place: ([start, end]) => [places[start]![0], places[end - 1]![1]],
});

const WORD = String.raw`[\p{L}\p{M}\p{N}_]`;
const IS_WORD = new RegExp(`^${WORD}$`, 'u');

/** Expression of whole words; null without any. */
function wordsOf(words: readonly string[]): RegExp | null {
  const each = words.flatMap((word) => {
    const parts = word.split(/\s+/u).filter((part) => part !== '');
    const characters = [...parts.join('')];
    if (characters.length === 0) return [];
    const before = IS_WORD.test(characters[0]!) ? `(?<!${WORD})` : '';
    const after = IS_WORD.test(characters.at(-1)!) ? `(?!${WORD})` : '';
    return before + parts.map(literal).join(String.raw`\s+`) + after;
  });
  return each.length === 0 ? null : new RegExp(each.join('|'), 'giu');
}

const literal = (text: string): string => text.replace(/[\\^$.*+?()[\]{}|/]/gu, String.raw`\$&`);

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
