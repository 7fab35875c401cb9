import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import type { Blobs } from '../../engines/blobs/port';
import type { Database } from '../../engines/postgres/port';
import { archivePrefixOf, insertSegment } from './segments';

/** Manifest that the archiver stores with each segment. */
const SegmentManifest = z.object({
  format: z.literal(1),
  engine: z.string(),
  topic: z.string(),
  partition: z.number(),
  from_offset: z.number(),
  to_offset: z.number(),
  records: z.number(),
  size_bytes: z.number(),
  sha256: z.string(),
  blob_key: z.string(),
  first_appended_at: z.string(),
  last_appended_at: z.string(),
});

/**
 * Adds segments of a log that are in the blob store but not in the database: those archived after the backup of the
 * database, while the log itself continued. Returns the number added.
 * @throws Error for a manifest of an unknown format
 */
export async function adoptSegments(db: Database, blobs: Blobs, engine: string): Promise<number> {
  let adopted = 0;
  for await (const key of blobs.keys(archivePrefixOf(engine))) {
    if (!key.endsWith('.json')) continue;
    const content = await blobs.get(key);
    if (!content) continue; // deleted since it was listed
    const parsed = SegmentManifest.safeParse(JSON.parse((await buffer(content)).toString()));
    if (!parsed.success) throw new Error(`${key} is no segment's manifest of a form that this program knows`);
    const { format: _format, ...segment } = parsed.data;
    if (segment.engine === engine && (await insertSegment(db, segment))) adopted += 1;
  }
  return adopted;
}
