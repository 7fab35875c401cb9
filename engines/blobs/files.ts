import { mkdir, open, readdir, rename, rm, rmdir, type FileHandle } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import { byBytes, checkKey, DEFAULT_CONTENT_TYPE, Meter, Verifier } from './keys';
import type { BlobInfo, Blobs } from './port';
import { removeLeftovers, temporaryName } from './temporary';

/**
 * What a blob's file ends with: the content comes first, then JSON with hash and type, its length (4 bytes), and this
 * mark.
 */
const MARK = Buffer.from('LUMIOBL1');
const TAIL_BYTES = 4 + MARK.length;
/** Files end in it and keys never hold it: what else lies in the folder is no blob. */
const SUFFIX = '~blob';
const TEMPORARY = '~tmp';

/**
 * Blobs as files under a folder. A blob is ONE file, content first and its hash and type behind it, so that a single
 * rename replaces all of it: written under a temporary name, flushed to disk, renamed, and the folder flushed.
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

  async put(key: string, content: Readable | Buffer, content_type = DEFAULT_CONTENT_TYPE): Promise<BlobInfo> {
    const path = this.pathOf(key);
    const temporary = join(this.root, TEMPORARY, temporaryName());
    const file = await open(temporary, 'wx', 0o600);
    try {
      const meter = new Meter();
      // The hash belongs behind the content, so the file stays open after the last byte of it.
      await piped(
        Buffer.isBuffer(content) ? Readable.from([content]) : content,
        meter,
        async (chunks: AsyncIterable<Buffer>) => {
          for await (const chunk of chunks) await file.writeFile(chunk);
        },
      );
      const info = { key, size_bytes: meter.size_bytes, sha256: meter.sha256(), content_type };
      const facts = Buffer.from(JSON.stringify({ sha256: info.sha256, content_type }));
      const length = Buffer.alloc(4);
      length.writeUInt32BE(facts.length);
      await file.writeFile(Buffer.concat([facts, length, MARK]));
      await file.sync();
      await file.close();
      await this.place(temporary, path);
      return info;
    } catch (error) {
      await file.close().catch(() => undefined); // closed already, or the failure at hand says why not
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
    // The file stays readable when it is replaced or deleted meanwhile. Errors of both ends reach the reader through
    // the verifier.
    pipeline(file.createReadStream({ start: 0, end: info.size_bytes - 1 }), verifier, () => undefined);
    return verifier;
  }

  async head(key: string): Promise<BlobInfo | undefined> {
    const opened = await this.open(key);
    await opened?.file.close();
    return opened?.info;
  }

  async *list(prefix: string): AsyncGenerator<BlobInfo> {
    for await (const key of this.keys('', prefix)) {
      const info = await this.head(key);
      if (info) yield info; // deleted since it was seen
    }
  }

  async delete(key: string): Promise<void> {
    const path = this.pathOf(key);
    await rm(path, { force: true });
    // Folders that became empty go too; one that is not empty, or gone already, ends it.
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

  /** Another process may remove the folder, since it is empty, between its making and the rename. */
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

  private async *keys(folder: string, prefix: string): AsyncGenerator<string> {
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
        if (key.startsWith(prefix) || prefix.startsWith(key)) yield* this.keys(key, prefix);
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

// ENOTDIR cannot come from keys, but from strangers' files in the folder: no blob lies there either.
const isMissing = (error: unknown) => ['ENOENT', 'ENOTDIR'].includes((error as NodeJS.ErrnoException).code ?? '');
