import type { Readable } from 'node:stream';
import type { Blobs } from '../../engines/blobs/port';
import { withTimeout } from '../../lib/async/signal';

/** Time that the store may take to give a blob, over all its chunks. */
const STORE_MS = 20_000;

/** The store did not give a blob in time. */
export class StoreTooSlow extends Error {
  constructor(key: string) {
    super(`the store did not give the blob ${key} in time`);
    this.name = 'StoreTooSlow';
  }
}

/** Chunks of a blob, for which the store has a limited time in all; time between them does not count. */
export class TimedBlob {
  private content: Readable | undefined;
  private chunks: AsyncIterator<Uint8Array> | undefined;
  private is_closed = false;

  constructor(
    private readonly blobs: Pick<Blobs, 'get'>,
    private readonly key: string,
    private left_ms = STORE_MS,
  ) {}

  /** Whether the store has the blob. @throws StoreTooSlow */
  async open(): Promise<boolean> {
    const opened = this.blobs.get(this.key).then((content) => {
      this.content = content;
      if (this.is_closed) content?.destroy();
    });
    try {
      await this.counted(opened);
    } catch (error) {
      this.close();
      throw error;
    }
    this.chunks = this.content?.[Symbol.asyncIterator]() as AsyncIterator<Uint8Array> | undefined;
    return this.chunks !== undefined;
  }

  /** The next chunk; null after the last. @throws StoreTooSlow */
  async next(): Promise<Uint8Array | null> {
    const { done, value } = await this.counted(this.chunks!.next());
    return done ? null : value;
  }

  close(): void {
    this.is_closed = true;
    this.content?.destroy();
  }

  private async counted<T>(work: Promise<T>): Promise<T> {
    const began = performance.now();
    try {
      return await withTimeout(work, Math.max(0, this.left_ms), () => new StoreTooSlow(this.key));
    } finally {
      this.left_ms -= performance.now() - began;
    }
  }
}
