import { open, readFile, rename, rm, stat, writeFile } from 'node:fs/promises';
import { z } from 'zod';

/** Rows of one batch as they stand in the file, and the place behind each source's last row. */
export interface ExportBatch {
  data: Buffer;
  places: ReadonlyMap<string, number | string>;
  /** State of the format behind this batch, from which a later encoder continues. */
  state: string | null;
}

const Progress = z.object({
  bytes: z.int().min(0),
  places: z.record(z.string(), z.union([z.int(), z.string()])),
  state: z.string().nullable().default(null),
  /** Text of the options that the file was begun with; null in files of earlier releases. */
  options: z.string().nullable().default(null),
});
export type ExportProgress = z.output<typeof Progress>;

const progressOf = (output: string): string => `${output}.progress`;

const absent = (error: NodeJS.ErrnoException): null => {
  if (error.code === 'ENOENT') return null;
  throw error;
};

/**
 * Progress of a partial export, with 0 bytes before its head is whole; null without a partial export.
 * @throws Error where the export was begun with other options: its file would have rows of two forms
 */
export async function readProgress(output: string, options: string): Promise<ExportProgress | null> {
  const text = await readFile(progressOf(output), 'utf8').catch(absent);
  if (text === null) {
    // Killed between the two files.
    const begun = await stat(output).catch(absent);
    return begun?.size === 0 ? { bytes: 0, places: {}, state: null, options } : null;
  }
  const progress = Progress.parse(JSON.parse(text));
  if (progress.options !== null && progress.options !== options)
    throw new Error(`${output} was begun with other options: ${progress.options}`);
  return progress;
}

/**
 * Writes an export and, after each batch, its progress; a whole export has no progress file. With `progress` the output
 * is cut to its last whole batch first.
 * @throws Error EEXIST where the output exists and no progress was passed, and where the output has lost bytes
 */
export async function writeExport(
  output: string,
  {
    head,
    batches,
    tail,
    options,
    progress,
  }: {
    head: Omit<ExportBatch, 'places'>;
    batches: AsyncIterable<ExportBatch>;
    tail(): Buffer;
    options: string;
    progress: ExportProgress | null;
  },
): Promise<void> {
  const file = await open(output, progress === null ? 'wx' : 'r+', 0o600);
  try {
    const places = new Map(Object.entries(progress?.places ?? {}));
    let bytes = progress?.bytes ?? 0;
    // After a loss of power the file may be behind its progress; truncation would fill the gap with zeros.
    const { size } = await file.stat();
    if (size < bytes)
      throw new Error(`${output} has ${size} bytes, fewer than the ${bytes} of its progress: export it again`);
    const append = async ({ data, state }: Omit<ExportBatch, 'places'>) => {
      await file.write(data, 0, data.length, bytes);
      bytes += data.length;
      await reach(state);
    };
    const reach = async (state: string | null) => {
      const reached: ExportProgress = { bytes, places: Object.fromEntries(places), state, options };
      await writeFile(`${progressOf(output)}.new`, JSON.stringify(reached), { mode: 0o600 });
      await rename(`${progressOf(output)}.new`, progressOf(output));
    };
    if (progress === null) await reach(null);
    else await file.truncate(bytes);
    if (bytes === 0) await append(head);
    for await (const batch of batches) {
      for (const [source, place] of batch.places) places.set(source, place);
      await append(batch);
    }
    const end = tail();
    await file.write(end, 0, end.length, bytes);
    await file.sync();
  } finally {
    await file.close();
  }
  await rm(progressOf(output), { force: true });
}
