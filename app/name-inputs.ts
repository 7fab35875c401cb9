import { z } from 'zod';

/** Matches a text with at least one visible character. */
export const HAS_VISIBLE_CHARACTER = /[^\s\p{C}]/u;

/** Input of a name; the parameters are the error texts for an empty and for a too long one. */
export const displayNameInput = (none: string, long: string) =>
  z.string().trim().regex(HAS_VISIBLE_CHARACTER, none).max(100, long);
