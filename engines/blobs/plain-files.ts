import { createWriteStream } from 'node:fs';
import { mkdir, open, rename, rm } from 'node:fs/promises';
import { dirname, join, resolve } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { pipeline } from 'node:stream/promises';
import { fileURLToPath } from 'node:url';
import { removeLeftovers, temporaryName } from '../../lib/files/temporary';
import { openBlobs } from './open';
import type { PlainFiles } from './port';

/** Opens files at an address: `s3://…`, else a folder. */
export async function openPlainFiles(address: string): Promise<PlainFiles> {
  if (!address.startsWith('s3:')) return folderStore(address.startsWith('file:') ? fileURLToPath(address) : address);
  const blobs = await openBlobs(address);
  return {
    async put(key, content) {
      await blobs.put(key, content, 'application/vnd.apache.parquet', { sha256: null });
    },
    async open(key) {
      const info = await blobs.head(key);
      if (info === undefined) return undefined;
      return {
        byteLength: info.size_bytes,
        async slice(start, end = info.size_bytes) {
          const part = await blobs.part(key, { start, end: end - 1 });
          if (part === undefined) throw new Error(`the file ${key} is gone`);
          return bytesOf(await buffer(part));
        },
        close: () => Promise.resolve(),
      };
    },
    delete: (key) => blobs.delete(key),
    close: () => blobs.close(),
  };
}

const bytesOf = (of: Buffer): ArrayBuffer => new Uint8Array(of).buffer;

const TEMPORARY = '.tmp';

async function folderStore(folder: string): Promise<PlainFiles> {
  const root = resolve(folder);
  await mkdir(join(root, TEMPORARY), { recursive: true, mode: 0o700 });
  await removeLeftovers(join(root, TEMPORARY));
  return {
    async put(key, content) {
      const temporary = join(root, TEMPORARY, temporaryName());
      const target = join(root, key);
      try {
        await pipeline(content, createWriteStream(temporary, { flags: 'wx', mode: 0o600, flush: true }));
        await mkdir(dirname(target), { recursive: true, mode: 0o700 });
        await rename(temporary, target);
        await flushFolder(dirname(target));
      } finally {
        await rm(temporary, { force: true });
      }
    },
    async open(key) {
      const file = await open(join(root, key), 'r').catch((error: NodeJS.ErrnoException) => {
        if (error.code === 'ENOENT') return undefined;
        throw error;
      });
      if (file === undefined) return undefined;
      const { size } = await file.stat();
      return {
        byteLength: size,
        async slice(start, end = size) {
          const bytes = Buffer.alloc(end - start);
          const { bytesRead } = await file.read(bytes, 0, bytes.length, start);
          if (bytesRead < bytes.length) throw new Error(`the file ${key} has become shorter`);
          return bytesOf(bytes);
        },
        close: () => file.close(),
      };
    },
    delete: (key) => rm(join(root, key), { force: true }),
    close: () => Promise.resolve(),
  };
}

async function flushFolder(folder: string): Promise<void> {
  const handle = await open(folder, 'r');
  await handle.sync();
  await handle.close();
}
