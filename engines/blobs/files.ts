import { mkdir, open, readdir, rename, rm, rmdir, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import { byBytes, checkKey, DEFAULT_CONTENT_TYPE, Meter, Verifier } from './keys';
import { BlobDamaged, type BlobInfo, type BlobRange, type Blobs, type PutOptions } from './port';
import { removeLeftovers, temporaryName } from '../../lib/files/temporary';

/**
 * End mark of a blob's file, which has the content, then JSON with hash and type, the length of the JSON (4 bytes), and
 * this mark.
 */
const MARK = Buffer.from('LUMIOBL1');
const TAIL_BYTES = 4 + MARK.length;
/** Suffix of blob files, which keys never contain; other files in the folder are not blobs. */
const SUFFIX = '~blob';
const TEMPORARY = '~tmp';

/**
 * Blobs as files under a folder. A blob is ONE file, content first and hash and type behind it, so that a single rename
 * replaces the whole blob: written under a temporary name, flushed to disk, renamed, and the folder flushed.
 * Leftovers of a crash are never listed.
 */
export async function createFileBlobs(folder: string): Promise<Blobs> {
  const root = resolve(folder);
  await mkdir(join(root, TEMPORARY), { recursive: true, mode: 0o700 });
  await removeLeftovers(join(root, TEMPORARY));
  return new FileBlobs(root);
}

interface Opened {
  file: FileHandle;
  info: BlobInfo;
}

class FileBlobs implements Blobs {
  constructor(private readonly root: string) {}

  async put(
    key: string,
    content: Readable | Buffer,
    content_type = DEFAULT_CONTENT_TYPE,
    { sha256 }: PutOptions = {},
  ): Promise<BlobInfo> {
    const path = this.pathOf(key);
    const temporary = join(this.root, TEMPORARY, temporaryName());
    const file = await open(temporary, 'wx', 0o600);
    try {
      const meter = new Meter();
      // The file stays open after the content, because the hash is written behind it.
      await piped(
        Buffer.isBuffer(content) ? Readable.from([content]) : content,
        meter,
        async (chunks: AsyncIterable<Buffer>) => {
          for await (const chunk of chunks) await file.writeFile(chunk);
        },
      );
      const info = { key, size_bytes: meter.size_bytes, sha256: meter.sha256(), content_type };
      if (sha256 && info.sha256 !== sha256) throw new BlobDamaged(key);
      const facts = Buffer.from(JSON.stringify({ sha256: info.sha256, content_type }));
      const length = Buffer.alloc(4);
      length.writeUInt32BE(facts.length);
      await file.writeFile(Buffer.concat([facts, length, MARK]));
      await file.sync();
      await file.close();
      await this.place(temporary, path);
      return info;
    } catch (error) {
      await file.close().catch(() => undefined); // closed already, or broken by the failure that is thrown
      await rm(temporary, { force: true });
      throw error;
    }
  }

  async get(key: string): Promise<Readable | undefined> {
    const opened = await this.open(key);
    if (!opened) return undefined;
    const { file, info } = opened;
    const verifier = new Verifier(key, info.sha256);
    if (info.size_bytes === 0) {
      await file.close();
      verifier.end();
      return verifier;
    }
    // The open file stays readable when it is replaced or deleted meanwhile. Errors of both ends reach the reader
    // through the verifier.
    pipeline(file.createReadStream({ start: 0, end: info.size_bytes - 1 }), verifier, () => undefined);
    return verifier;
  }

  async part(key: string, { start, end }: BlobRange): Promise<Readable | undefined> {
    const opened = await this.open(key);
    if (!opened) return undefined;
    const { file, info } = opened;
    const last = Math.min(end, info.size_bytes - 1);
    if (start <= last) return file.createReadStream({ start, end: last });
    await file.close();
    return Readable.from([]);
  }

  async head(key: string): Promise<BlobInfo | undefined> {
    const opened = await this.open(key);
    await opened?.file.close();
    return opened?.info;
  }

  async *list(prefix: string): AsyncGenerator<BlobInfo> {
    for await (const key of this.keys(prefix)) {
      const info = await this.head(key);
      if (info) yield info; // deleted since it was seen
    }
  }

  async delete(key: string): Promise<void> {
    const path = this.pathOf(key);
    await rm(path, { force: true });
    // Removes empty parent folders as well, up to the first that is not empty or is missing.
    for (let folder = dirname(path); folder.length > this.root.length; folder = dirname(folder)) {
      const emptied = await rmdir(folder).then(
        () => true,
        () => false,
      );
      if (!emptied) return;
    }
  }

  async close(): Promise<void> {}

  private pathOf(key: string): string {
    return join(this.root, ...checkKey(key)) + SUFFIX;
  }

  /** Renames into place; retries when another process removes the still empty folder before the rename. */
  private async place(temporary: string, path: string): Promise<void> {
    for (let attempt = 1; ; attempt += 1) {
      try {
        await mkdir(dirname(path), { recursive: true, mode: 0o700 });
        await rename(temporary, path);
        await flushFolder(dirname(path));
        return;
      } catch (error) {
        if (!isMissing(error) || attempt >= 10) throw error;
      }
    }
  }

  private async open(key: string): Promise<Opened | undefined> {
    let file: FileHandle;
    try {
      file = await open(this.pathOf(key), 'r');
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
    try {
      return { file, info: await readInfo(file, key) };
    } catch (error) {
      await file.close();
      throw error;
    }
  }

  keys(prefix: string): AsyncGenerator<string> {
    return this.keysIn('', prefix);
  }

  private async *keysIn(folder: string, prefix: string): AsyncGenerator<string> {
    const entries = await readdir(join(this.root, folder), { withFileTypes: true }).catch((error: unknown) => {
      if (isMissing(error)) return [];
      throw error;
    });
    const names = entries
      .filter((entry) => (entry.isDirectory() ? entry.name !== TEMPORARY : entry.name.endsWith(SUFFIX)))
      .map((entry) => (entry.isDirectory() ? `${entry.name}/` : entry.name.slice(0, -SUFFIX.length)))
      .sort(byBytes);
    for (const name of names) {
      const key = folder + name;
      if (name.endsWith('/')) {
        if (key.startsWith(prefix) || prefix.startsWith(key)) yield* this.keysIn(key, prefix);
      } else if (key.startsWith(prefix)) yield key;
    }
  }
}

async function readInfo(file: FileHandle, key: string): Promise<BlobInfo> {
  const broken = new Error(`blob ${key}: its file is cut off or is not a blob`);
  const { size } = await file.stat();
  if (size < TAIL_BYTES) throw broken;
  const tail = await readAt(file, size - TAIL_BYTES, TAIL_BYTES);
  const length = tail.readUInt32BE(0);
  const size_bytes = size - TAIL_BYTES - length;
  if (!tail.subarray(4).equals(MARK) || size_bytes < 0) throw broken;
  const facts = JSON.parse((await readAt(file, size_bytes, length)).toString()) as {
    sha256: string;
    content_type: string;
  };
  return { key, size_bytes, sha256: facts.sha256, content_type: facts.content_type };
}

async function readAt(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const bytes = Buffer.alloc(length);
  await file.read(bytes, 0, length, position);
  return bytes;
}

async function flushFolder(path: string): Promise<void> {
  const folder = await open(path, 'r');
  try {
    await folder.sync();
  } finally {
    await folder.close();
  }
}

// ENOTDIR is not caused by keys, but by foreign files in the folder, where no blob is either.
const isMissing = (error: unknown) => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
