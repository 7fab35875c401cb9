/** Name as it is compared: two names are equal when they look alike, regardless of case and invisible characters. */
export const comparableName = (name: string): string =>
  name
    .normalize('NFKC')
    .replace(/\p{Cf}/gu, '')
    .trim()
    .toLowerCase();

/** Base of a slug whose name has no letter or digit of the Latin alphabet. */
const FALLBACK = 'role';
/** Characters of a slug without its number; compatibility characters decompose into several. */
const MAX_BASE = 100;

/** Slug of a name: accents removed, `ß` as `ss`, other characters as hyphens. Equal names have equal bases. */
function slugBase(name: string): string {
  const base = comparableName(name)
    .normalize('NFKD')
    // Upper case decomposes ligatures and ß, which NFKD keeps.
    .toUpperCase()
    .toLowerCase()
    .replace(/\p{M}+/gu, '')
    .replace(/[^a-z0-9]+/g, '-')
    .slice(0, MAX_BASE)
    .replace(/^-|-$/g, '');
  return base === '' ? FALLBACK : base;
}

/** Slug derived from a name, with the first free number where the slug without one is taken. */
export function freeSlug(name: string, taken: ReadonlySet<string>): string {
  const base = slugBase(name);
  if (!taken.has(base)) return base;
  let number = 2;
  while (taken.has(`${base}-${number}`)) number += 1;
  return `${base}-${number}`;
}
