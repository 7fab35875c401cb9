import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import type { ByteRange } from '../../kernel/operations/transfers';

/** Packaged open fonts, by the names of their packages: nothing is fetched from outside. */
const PACKAGED = [
  ...['bangers', 'bebas-neue', 'inter', 'montserrat', 'noto-sans', 'noto-sans-arabic', 'noto-sans-hebrew'],
  ...['noto-sans-jp', 'noto-sans-kr', 'noto-sans-sc', 'noto-sans-thai', 'open-sans', 'poppins', 'press-start-2p'],
  ...['roboto', 'rubik'],
] as const;
type Slug = (typeof PACKAGED)[number];

/** A family as its package describes it. */
export interface FontFamily {
  slug: Slug;
  /** `Noto Sans JP` */
  family: string;
  weights: readonly number[];
  /** Scripts that the family draws: `latin`, `cyrillic`. */
  subsets: readonly string[];
  category: string;
  /** Ranges of characters (CSS `unicode-range`) by the file that has them. */
  ranges: ReadonlyMap<string, string>;
}

export interface FontFile {
  size_bytes: number;
  sha256: string;
  open(range: ByteRange): AsyncIterable<Uint8Array>;
}

const known = new Map<Slug, Promise<FontFamily>>();
/** A hash for each file that was asked for; there are a few thousand files. */
const hashes = new Map<string, Promise<{ size_bytes: number; sha256: string }>>();

/** The value of a key, read once; a failed read is read again. */
function remembered<Key, Value>(all: Map<Key, Promise<Value>>, key: Key, read: () => Promise<Value>): Promise<Value> {
  const value = all.get(key) ?? read();
  all.set(key, value);
  value.catch(() => all.delete(key));
  return value;
}

const folderOf = (slug: Slug): string => dirname(require.resolve(`@fontsource/${slug}/metadata.json`));
const slugOf = (name: string): string =>
  name
    .trim()
    .toLowerCase()
    .replaceAll(/[\s+_]+/g, '-');

/** Finds a family by its name in an address (`Noto Sans`, `noto-sans`). */
export function fontFamily(name: string): Promise<FontFamily> | undefined {
  const slug = PACKAGED.find((one) => one === slugOf(name));
  if (slug === undefined) return undefined;
  return remembered(known, slug, () => readFamily(slug));
}

/** All families, in the order of their names. */
export const fontFamilies = (): Promise<FontFamily[]> => Promise.all(PACKAGED.map((slug) => fontFamily(slug)!));

async function readFamily(slug: Slug): Promise<FontFamily> {
  const read = async (file: string) => JSON.parse(await readFile(join(folderOf(slug), file), 'utf8')) as unknown;
  const about = (await read('metadata.json')) as Pick<FontFamily, 'family' | 'weights' | 'subsets' | 'category'>;
  const ranges = (await read('unicode.json')) as Record<string, string>;
  return {
    slug,
    family: about.family,
    weights: about.weights,
    subsets: about.subsets,
    category: about.category,
    // Packages write slices of large scripts as `[12]`.
    ranges: new Map(Object.entries(ranges).map(([name, range]) => [name.replace(/^\[(\d+)\]$/, '$1'), range])),
  };
}

/** Finds the font file of a weight and a subset. */
export async function fontFile(family: FontFamily, weight: number, subset: string): Promise<FontFile | undefined> {
  if (!family.weights.includes(weight) || !family.ranges.has(subset)) return undefined;
  const path = join(folderOf(family.slug), 'files', `${family.slug}-${subset}-${weight}-normal.woff2`);
  return {
    ...(await remembered(hashes, path, () => hashOf(path))),
    open: ({ start, end }) => createReadStream(path, { start, end }),
  };
}

async function hashOf(path: string): Promise<{ size_bytes: number; sha256: string }> {
  const bytes = await readFile(path);
  return { size_bytes: bytes.length, sha256: createHash('sha256').update(bytes).digest('hex') };
}

/** CSS with a face for each weight and subset; browsers fetch the files whose characters they draw. */
export function fontCss(family: FontFamily, weights: readonly number[]): string {
  const faces = weights.flatMap((weight) =>
    [...family.ranges].map(
      ([subset, range]) => `@font-face {
  font-family: '${family.family}';
  font-style: normal;
  font-weight: ${weight};
  font-display: swap;
  src: url('/v1/fonts/${family.slug}/${weight}.woff2?subset=${subset}') format('woff2');
  unicode-range: ${range};
}
`,
    ),
  );
  return faces.join('');
}
