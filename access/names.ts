import { z } from 'zod';

/** Something that people see: neither blank nor made of characters that show nothing. */
export const SHOWN = /[^\s\p{C}]/u;

/** A name that people give to something; the texts are what they are told when it is none, or too long. */
export const givenName = (none: string, long: string) => z.string().trim().regex(SHOWN, none).max(100, long);
