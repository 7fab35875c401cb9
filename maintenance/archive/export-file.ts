import { open, readFile, rename, rm, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/** Rows of one batch as text, and the place behind each source's last row. */
export interface ExportBatch {
  text: string;
  places: ReadonlyMap<string, number>;
}

const Progress = z.object({ bytes: z.int().min(0), places: z.record(z.string(), z.int()) });
export type ExportProgress = z.output<typeof Progress>;

const progressOf = (output: string): string => `${output}.progress`;

/** Progress of a partial export; null without a partial export. */
export async function readProgress(output: string): Promise<ExportProgress | null> {
  let text: string;
  try {
    text = await readFile(progressOf(output), 'utf8');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
  return Progress.parse(JSON.parse(text));
}

/**
 * Writes an export and, after each batch, its progress; a whole export has no progress file. With `progress` the output
 * is cut to its last whole batch first.
 * @throws Error EEXIST where the output exists and no progress was passed
 */
export async function writeExport(
  output: string,
  { head, batches, progress }: { head: string; batches: AsyncIterable<ExportBatch>; progress: ExportProgress | null },
): Promise<void> {
  const file = await open(output, progress === null ? 'wx' : 'r+', 0o600);
  try {
    const places = new Map(Object.entries(progress?.places ?? {}));
    let bytes = progress?.bytes ?? 0;
    const append = async (text: string) => {
      const data = Buffer.from(text);
      await file.write(data, 0, data.length, bytes);
      bytes += data.length;
      const state: ExportProgress = { bytes, places: Object.fromEntries(places) };
      await writeFile(`${progressOf(output)}.new`, JSON.stringify(state), { mode: 0o600 });
      await rename(`${progressOf(output)}.new`, progressOf(output));
    };
    if (progress === null) await append(head);
    else await file.truncate(bytes);
    for await (const batch of batches) {
      for (const [source, place] of batch.places) places.set(source, place);
      await append(batch.text);
    }
    await file.sync();
  } finally {
    await file.close();
  }
  await rm(progressOf(output), { force: true });
}
