import { readFileSync } from 'node:fs';

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

/** Cuts a text into pieces of one font each. Combining marks stay with the character before. */
export function fontRuns(text: string): Run[] {
  const runs: Run[] = [];
  for (const character of text) {
    if (UNDRAWN.test(character)) continue;
    const last = runs.at(-1);
    const joins = last !== undefined && /^(?:\p{M}| )$/u.test(character);
    const font = joins ? last.font : FACES.find(({ covers }) => covers.test(character))!.name;
    if (last?.font === font) last.text += character;
    else runs.push({ font, text: character });
  }
  return runs;
}

export const LATIN = FACES[0]!.name;
export const readFont = (font: string): Buffer => readFileSync(require.resolve(font));
