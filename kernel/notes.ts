/** A store of blobs, as far as notes are read from it. */
export interface NoteStore {
  keys(prefix: string): AsyncIterable<string>;
  get(key: string): Promise<AsyncIterable<Buffer> | undefined>;
}

/** Notes that are read at once. */
const READS_AT_ONCE = 16;

/** Key of a note below `prefix`, in a folder of its UTC day, so that later notes are listed without earlier ones. */
export const noteKey = (prefix: string, name: string, noted_at: string): string =>
  `${prefix}${new Date(noted_at).toISOString().slice(0, 10)}/${name}.json`;

/**
 * Texts of the notes below `prefix`, in the order of their keys: those of the given days (`YYYY-MM-DD`), or all,
 * including those of earlier releases, which have no day in their key.
 */
export async function notesOf(blobs: NoteStore, prefix: string, days?: readonly string[]): Promise<string[]> {
  const keys: string[] = [];
  for (const folder of days?.map((day) => `${prefix}${day}/`) ?? [prefix]) {
    for await (const key of blobs.keys(folder)) keys.push(key);
  }
  const texts: string[] = [];
  for (let at = 0; at < keys.length; at += READS_AT_ONCE) {
    const contents = await Promise.all(keys.slice(at, at + READS_AT_ONCE).map((key) => textOf(blobs, key)));
    texts.push(...contents.filter((text) => text !== undefined));
  }
  return texts;
}

/** Undefined when it was deleted since it was listed. */
async function textOf(blobs: NoteStore, key: string): Promise<string | undefined> {
  const content = await blobs.get(key);
  if (content === undefined) return undefined;
  const chunks: Buffer[] = [];
  for await (const chunk of content) chunks.push(chunk);
  return Buffer.concat(chunks).toString();
}
