import unhomoglyph from 'unhomoglyph';

/** A text in another form, with the places of its units in the original. */
export interface FoldedText {
  readonly text: string;
  /** By unit: start and end of the character in the original that it comes from. */
  readonly places: readonly (readonly [start: number, end: number])[];
}

/** A character with its marks. */
const CHARACTER = /\P{M}\p{M}*|\p{M}+/gu;
/** Characters without a width, and others that nobody sees. */
const UNSEEN = /[\p{Default_Ignorable_Code_Point}\p{Cf}]/gu;
const NOT_ASCII = /[^\0-\x7f]/gu;

const narrow = (character: string): string => character.normalize('NFKC').replace(UNSEEN, '');
/** ASCII characters stay: `rn` is no `m` here. */
const alike = (character: string): string => narrow(character).replace(NOT_ASCII, (one) => unhomoglyph(one));

function foldBy(text: string, fold: (character: string) => string): FoldedText {
  let folded = '';
  const places: (readonly [number, number])[] = [];
  for (const { 0: character, index } of text.matchAll(CHARACTER)) {
    const part = fold(character).toLowerCase();
    folded += part;
    for (let unit = 0; unit < part.length; unit += 1) places.push([index, index + character.length]);
  }
  return { text: folded, places };
}

/** The text without differences of case, of width, and of characters that nobody sees. */
export const foldText = (text: string): FoldedText => foldBy(text, narrow);
/** As {@link foldText}, with letters of other scripts as the Latin ones that look like them. */
export const foldLookAlikes = (text: string): FoldedText => foldBy(text, alike);
