import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFileBlobs } from '../../engines/blobs/files';
import type { Blobs } from '../../engines/blobs/port';
import { type TestDatabase, testDatabase } from './database';
import { engines, type Engines } from './projections';

/** For each test a database of its own, and the engines on it: the embedded ones where no others are opened. */
export function enginesOfEach(
  use: (t: TestDatabase, on: Engines) => unknown,
  { connections = 10, open = (t) => engines(t.db), before }: EachOptions = {},
): void {
  let t: TestDatabase;
  let on: Engines;
  beforeEach(async () => {
    t = await testDatabase(connections);
    on = await open(t);
    await use(t, on);
  });
  afterEach(async () => {
    await before?.();
    await on.close();
    await t.drop();
  });
}

interface EachOptions {
  connections?: number;
  open?: (t: TestDatabase) => Promise<Engines>;
  /** Ends what the test has opened on them. */
  before?: () => Promise<unknown>;
}

/** For each test a folder of its own with blobs in it. */
export function blobsOfEach(use: (blobs: Blobs, folder: string) => unknown): void {
  let folder: string;
  let blobs: Blobs;
  beforeEach(async () => {
    folder = mkdtempSync(join(tmpdir(), 'lumio-blobs-'));
    blobs = await createFileBlobs(folder);
    await use(blobs, folder);
  });
  afterEach(async () => {
    await blobs.close();
    rmSync(folder, { recursive: true, force: true });
  });
}
