import { createReadStream } from 'node:fs';
import { mkdir, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { removeLeftovers, temporaryName } from '../../lib/files/temporary';
import type { ExportRow } from '../archive/files/columns';

/** Bytes of rows that are sorted in memory; larger sets are sorted in files. */
const RUN_BYTES = 32 * 1024 * 1024;

interface Line {
  account: string;
  text: string;
}

/** The rows by account, in their order within each; memory is bounded. */
export async function* sortedByAccount(
  batches: AsyncIterable<ExportRow[]>,
  run_bytes = RUN_BYTES,
): AsyncGenerator<ExportRow> {
  let folder: string | undefined;
  const files: string[] = [];
  let lines: Line[] = [];
  let bytes = 0;
  try {
    for await (const rows of batches) {
      for (const row of rows) {
        const text = JSON.stringify(row);
        lines.push({ account: String(row['account_id']), text });
        bytes += text.length;
      }
      if (bytes < run_bytes) continue;
      folder ??= await openFolder();
      const file = join(folder, String(files.length));
      await writeFile(file, sorted(lines).map(fileLine).join(''), { mode: 0o600 });
      files.push(file);
      [lines, bytes] = [[], 0];
    }
    const runs = [...files.map(linesOf), sorted(lines)[Symbol.iterator]()];
    for await (const { text } of merged(runs)) yield JSON.parse(text) as ExportRow;
  } finally {
    if (folder !== undefined) await rm(folder, { recursive: true, force: true });
  }
}

const PREFIX = 'lumio-lake-';
async function openFolder(): Promise<string> {
  const folder = join(tmpdir(), temporaryName(PREFIX));
  await mkdir(folder, { mode: 0o700 });
  return folder;
}

/** Removes files of processes that were killed. */
export const removeUnsorted = (): Promise<void> => removeLeftovers(tmpdir(), PREFIX, true);

/** Stable, so that rows of an account keep their order. */
const sorted = (lines: Line[]): Line[] =>
  lines.sort((a, b) => (a.account < b.account ? -1 : Number(a.account > b.account)));
/** JSON has no line feed. */
const fileLine = ({ account, text }: Line): string => `${account} ${text}\n`;

async function* linesOf(file: string): AsyncGenerator<Line> {
  for await (const line of createInterface({ input: createReadStream(file), crlfDelay: Infinity })) {
    const space = line.indexOf(' ');
    yield { account: line.slice(0, space), text: line.slice(space + 1) };
  }
}

/** Merges sorted runs; of equal accounts the earlier run comes first. */
async function* merged(runs: readonly (AsyncIterator<Line> | Iterator<Line>)[]): AsyncGenerator<Line> {
  const heads = await Promise.all(runs.map(async (run) => run.next()));
  for (;;) {
    let least = -1;
    for (const [n, head] of heads.entries()) {
      if (head.done === true) continue;
      const best = heads[least];
      if (best === undefined || best.done === true || head.value.account < best.value.account) least = n;
    }
    const head = heads[least];
    if (head === undefined || head.done === true) return;
    yield head.value;
    heads[least] = await runs[least]!.next();
  }
}
