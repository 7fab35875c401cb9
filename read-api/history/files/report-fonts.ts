import { readFileSync } from 'node:fs';
import bidiFactory from 'bidi-js';

const bidi = bidiFactory();

/** A packaged font, and the characters that it draws. */
interface Face {
  name: string;
  covers: RegExp;
}

const file = (family: string, subset: string): Face['name'] =>
  `@fontsource/${family}/files/${family}-${subset}-400-normal.woff`;

/** Fonts by the scripts that they draw; the first that covers a character is taken, else the last. */
const FACES: readonly Face[] = [
  { name: file('noto-sans', 'latin'), covers: /[ -\u00ff\u2010-\u206f\u20ac\u2122]/u },
  { name: file('noto-sans', 'cyrillic'), covers: /[\u0400-\u045f\u0490\u0491\u04b0\u04b1\u2116]/u },
  { name: file('noto-sans', 'greek'), covers: /\p{Script=Greek}/u },
  {
    name: file('noto-sans', 'vietnamese'),
    covers: /[\u0102\u0103\u0110\u0111\u01a0\u01a1\u01af\u01b0\u1ea0-\u1ef9\u20ab]/u,
  },
  { name: file('noto-sans', 'cyrillic-ext'), covers: /\p{Script=Cyrillic}/u },
  { name: file('noto-sans', 'devanagari'), covers: /\p{Script=Devanagari}/u },
  { name: file('noto-sans-arabic', 'arabic'), covers: /\p{Script=Arabic}/u },
  { name: file('noto-sans-hebrew', 'hebrew'), covers: /\p{Script=Hebrew}/u },
  { name: file('noto-sans-thai', 'thai'), covers: /\p{Script=Thai}/u },
  { name: file('noto-sans-kr', 'korean'), covers: /\p{Script=Hangul}/u },
  {
    name: file('noto-sans-jp', 'japanese'),
    covers: /[\p{Script=Hiragana}\p{Script=Katakana}\u3000-\u303f\uff00-\uffef]/u,
  },
  { name: file('noto-sans-sc', 'chinese-simplified'), covers: /\p{Script=Han}/u },
  { name: file('noto-sans', 'latin-ext'), covers: /[\s\S]/u },
];

/** A piece of text in one font. */
export interface Run {
  font: string;
  text: string;
}

/** Pictures and their modifiers, which no packaged font draws. */
const UNDRAWN = /\p{Extended_Pictographic}|\p{Regional_Indicator}|\p{Emoji_Modifier}|\u200d|\ufe0f/u;

/** Fonts whose words are laid out from right to left. */
const RIGHT_TO_LEFT: ReadonlySet<string> = new Set(
  FACES.filter(({ name }) => /-(?:arabic|hebrew)-/.test(name)).map(({ name }) => name),
);

interface LogicalRun extends Run {
  /** Of the bidirectional algorithm: odd from right to left. */
  level: number;
}

/**
 * Cuts a text into pieces of one font each, in the order in which they stand on the line from left to right. Combining
 * marks stay with the character before.
 */
export function fontRuns(text: string): Run[] {
  const drawn = [...text].filter((character) => !UNDRAWN.test(character)).join('');
  return inVisualOrder(logicalRuns(drawn)).flatMap(({ font, text: part, level }) =>
    level % 2 === 0 ? [{ font, text: part }] : reversed(font, part).map((piece) => ({ font, text: piece })),
  );
}

function logicalRuns(text: string): LogicalRun[] {
  const { levels } = bidi.getEmbeddingLevels(text);
  const runs: LogicalRun[] = [];
  let at = 0;
  for (const character of text) {
    const level = levels[at]!;
    const shown = level % 2 === 0 ? character : (bidi.getMirroredCharacter(character) ?? character);
    at += character.length;
    const last = runs.at(-1);
    const joins = last !== undefined && /^(?:\p{M}| )$/u.test(character);
    const font = joins ? last.font : FACES.find(({ covers }) => covers.test(shown))!.name;
    if (last?.font === font && last.level === level) last.text += shown;
    else runs.push({ font, text: shown, level });
  }
  return runs;
}

/** Rule L2 of the bidirectional algorithm: from the highest level down, each sequence of at least that level turns. */
function inVisualOrder(runs: readonly LogicalRun[]): LogicalRun[] {
  const ordered = [...runs];
  for (let level = Math.max(0, ...runs.map((run) => run.level)); level > 0; level -= 1) {
    for (let from = 0; from < ordered.length; from += 1) {
      let to = from;
      while (to < ordered.length && ordered[to]!.level >= level) to += 1;
      if (to > from) ordered.splice(from, to - from, ...ordered.slice(from, to).reverse());
      from = to;
    }
  }
  return ordered;
}

/** A font from right to left lays out each word by itself; in other fonts the characters turn. */
const reversed = (font: string, text: string): string[] =>
  RIGHT_TO_LEFT.has(font) ? text.split(/( )/).filter(Boolean).reverse() : [[...text].reverse().join('')];

export const LATIN = FACES[0]!.name;
export const readFont = (font: string): Buffer => readFileSync(require.resolve(font));
