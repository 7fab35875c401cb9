import { z } from 'zod';

const Head = z.object({
  installation_id: z.string(),
  exported_at: z.string(),
  /** Key of the keyed hash of subjects; null when no subject key was ever made. */
  subject_hash_key: z.string().nullable(),
});
const Key = z.object({
  key_id: z.uuid(),
  subject_hash: z.string(),
  wrapped_key: z.string(),
  created_at: z.string(),
  /** Time of its destruction. Absent in exports of older releases, whose keys did not expire. */
  expires_at: z.string().nullable().default(null),
});
const Erasure = z.object({ key_id: z.uuid(), erased_at: z.string() });
const Counts = z.object({ keys: z.int(), erasures: z.int() });

export type KeyHead = z.infer<typeof Head>;
export type ExportedKey = z.infer<typeof Key>;
export type ExportedErasure = z.infer<typeof Erasure>;
export type KeyCounts = z.infer<typeof Counts>;

/** Line of a key export, in this order: the head, erasures, keys, the end with counts. */
export type KeyLine =
  { head: KeyHead } | { erased: readonly ExportedErasure[] } | { keys: readonly ExportedKey[] } | { end: KeyCounts };

/**
 * Format of new exports: several lines, so that no text holds the whole. A file without the last line is truncated.
 */
const FORMAT = 2;
const Line = z.union([
  Head.extend({ format: z.literal(FORMAT) }).transform((head): KeyLine => ({ head })),
  z.strictObject({ erased: z.array(Erasure) }),
  z.strictObject({ keys: z.array(Key) }),
  z.strictObject({ end: Counts }),
]);
/** Format of older releases: a single line with everything. */
const Whole = Head.extend({ format: z.literal(1), keys: z.array(Key), erasures: z.array(Erasure) });

export const writeLine = (line: KeyLine): string =>
  `${JSON.stringify('head' in line ? { format: FORMAT, ...line.head } : line)}\n`;

/**
 * Reads a key export of either format, line by line.
 * @throws Error in one line when the text is not a key export, or is truncated
 */
export async function* readLines(lines: AsyncIterable<string> | Iterable<string>): AsyncGenerator<KeyLine> {
  const found: KeyCounts = { keys: 0, erasures: 0 };
  let nth = 0;
  let ended = false;
  for await (const text of lines) {
    nth += 1;
    for (const line of nth === 1 ? first(text) : [parsed(text, nth)]) {
      if (ended) throw new Error(`line ${nth} comes after its end`);
      if ('keys' in line) found.keys += line.keys.length;
      if ('erased' in line) found.erasures += line.erased.length;
      if ('end' in line) {
        ended = true;
        if (line.end.keys !== found.keys || line.end.erasures !== found.erasures) throw new Error('lines are missing');
      }
      yield line;
    }
  }
  if (!ended) throw new Error(nth === 0 ? 'it is empty' : 'it was cut off');
}

function first(text: string): KeyLine[] {
  const value = json(text, 1);
  const whole = Whole.safeParse(value);
  if (whole.success) {
    const { keys, erasures, format: _format, ...head } = whole.data;
    return [{ head }, { erased: erasures }, { keys }, { end: { keys: keys.length, erasures: erasures.length } }];
  }
  const line = Line.safeParse(value);
  if (!line.success || !('head' in line.data)) throw new Error('its form is not one that this program knows');
  return [line.data];
}

function parsed(text: string, nth: number): KeyLine {
  const line = Line.safeParse(json(text, nth));
  if (!line.success || 'head' in line.data) throw new Error(`line ${nth} is of no form that this program knows`);
  return line.data;
}

function json(text: string, nth: number): unknown {
  try {
    return JSON.parse(text);
  } catch {
    // The parser's own message would quote the text.
    throw new Error(`line ${nth} is no JSON`);
  }
}
