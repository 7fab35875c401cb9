import { createHash } from 'node:crypto';
import { z } from 'zod';
import type { RequestContext } from '../../access/authentication/caller';
import { download, get, invalid, notFound, publicAccess, query, whole } from '../../app/operation';
import type { Download } from '../../kernel/operations/transfers';
import { fontCss, fontFamilies, fontFamily, fontFile } from '../../services/studio/fonts';

const CSS = 'text/css; charset=utf-8';
const WOFF2 = 'font/woff2';
const IMMUTABLE = 'public, max-age=31536000, immutable';
/** A release may add subsets to a family. */
const A_DAY = 'public, max-age=86400';
const FONT_NOT_FOUND = { FONT_NOT_FOUND: notFound('Font not found') };
const family = z.string().min(1).max(100).describe('As listed, whatever its case: `Noto Sans`, `noto-sans`');

const Font = z
  .object({
    family: z.string().describe('As CSS names it'),
    slug: z.string().describe('In addresses'),
    category: z.string(),
    weights: z.array(z.int()),
    subsets: z.array(z.string()),
  })
  .meta({ id: 'FontFamily' });

/** The packaged fonts. Source: spec doc1 §4 (font proxy); what it offers is ours. */
export const fonts = query({
  name: 'fonts',
  summary: 'Families of fonts that overlays may use',
  rest: get('/v1/fonts'),
  pages: whole(),
  guard: [publicAccess],
  input: z.object({}),
  output: Font,
  run: async () =>
    (await fontFamilies()).map(({ family: name, slug, category, weights, subsets }) => ({
      ...{ family: name, slug, category },
      weights: [...weights],
      subsets: [...subsets],
    })),
});

/** The style sheet of a family. */
export const fontStyles = query({
  name: 'fontStyles',
  summary: 'The style sheet of a family, with a face for each weight and subset',
  rest: get('/v1/fonts/{family}/css'),
  graphql: null,
  sends: download(CSS),
  guard: [publicAccess],
  input: z.object({
    family,
    weights: z.string().max(100).nullish().describe('Several by commas (`400,700`); default all of the family'),
  }),
  output: z.object({}),
  errors: { ...FONT_NOT_FOUND, UNKNOWN_WEIGHT: invalid('weights must be weights of the family') },
  async run({ input, context, refuse }) {
    const found = await fontFamily(input.family);
    if (found === undefined) throw refuse('FONT_NOT_FOUND');
    const weights = input.weights ? [...new Set(input.weights.split(',').map(Number))] : found.weights;
    if (!weights.every((weight) => found.weights.includes(weight))) throw refuse('UNKNOWN_WEIGHT');
    const bytes = Buffer.from(fontCss(found, weights));
    const etag = createHash('sha256').update(bytes).digest('hex');
    return anywhere(context, {
      content_type: CSS,
      size_bytes: bytes.length,
      etag,
      cache_control: A_DAY,
      open: async function* ({ start, end }) {
        yield bytes.subarray(start, end + 1);
      },
    });
  },
});

/** A file of a family. */
export const fontData = query({
  name: 'fontData',
  summary: 'The file of one weight and subset of a family, as WOFF2',
  rest: get('/v1/fonts/{family}/{weight}.woff2'),
  graphql: null,
  sends: download(WOFF2),
  guard: [publicAccess],
  input: z.object({
    family,
    weight: z.int().min(1).max(1000),
    subset: z.string().min(1).max(50).nullish().describe('Default `latin`'),
  }),
  output: z.object({}),
  errors: FONT_NOT_FOUND,
  async run({ input, context, refuse }) {
    const found = await fontFamily(input.family);
    const file = found && (await fontFile(found, input.weight, input.subset ?? 'latin'));
    if (file === undefined) throw refuse('FONT_NOT_FOUND');
    const { size_bytes, sha256: etag, open } = file;
    return anywhere(context, { content_type: WOFF2, size_bytes, etag, cache_control: IMMUTABLE, open });
  },
});

/** Fonts are fetched by pages of every site. */
function anywhere(context: RequestContext, sent: Download): Download {
  context.response_headers = {
    ...context.response_headers,
    'access-control-allow-origin': '*',
    'cross-origin-resource-policy': 'cross-origin',
  };
  return sent;
}
