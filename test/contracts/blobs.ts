import { createHash, randomBytes } from 'node:crypto';
import { readdirSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { BlobDamaged, InvalidBlobKey, type BlobInfo, type Blobs } from '../../engines/blobs/port';

export interface BlobsUnderTest {
  blobs: Blobs;
  /** Another process on the same store. */
  again(): Promise<Blobs>;
  /** Changes one byte of the stored content behind the store's back. */
  damage(key: string): Promise<void>;
  close(): Promise<void>;
}

const sha256 = (content: Buffer) => createHash('sha256').update(content).digest('hex');

async function collect(list: AsyncIterable<BlobInfo>): Promise<BlobInfo[]> {
  const found: BlobInfo[] = [];
  for await (const info of list) found.push(info);
  return found;
}

/** What every blob store keeps. */
export function blobsContract(name: string, open: () => Promise<BlobsUnderTest>): void {
  describe(`blobs: ${name}`, () => {
    let on: BlobsUnderTest;
    let blobs: Blobs;
    beforeAll(async () => {
      on = await open();
      blobs = on.blobs;
    });
    afterAll(() => on.close());

    const read = async (key: string) => {
      const stream = await blobs.get(key);
      return stream && (await buffer(stream));
    };

    test('what was put is what is read, with its size, hash and content type, by another process too', async () => {
      for (const content of [Buffer.alloc(0), Buffer.from('Ä€😀'), randomBytes(100_000)]) {
        const key = `round/trip ${content.length}.bin`;
        const info = { key, size_bytes: content.length, sha256: sha256(content), content_type: 'audio/mpeg' };
        expect(await blobs.put(key, content, 'audio/mpeg')).toEqual(info);
        expect(await blobs.head(key)).toEqual(info);
        expect(await read(key)).toEqual(content);
        const other = await on.again();
        expect(await other.head(key)).toEqual(info);
        await other.close();
      }
    });

    test('a part is read by its first and last byte, and nothing of a part behind the end', async () => {
      const content = randomBytes(300_000);
      await blobs.put('parts', content);
      const part = async (start: number, end: number) => buffer((await blobs.part('parts', { start, end }))!);
      for (const [start, end] of [
        [0, 0],
        [0, 299_999],
        [150_000, 150_009],
        [299_990, 400_000],
      ] as const)
        expect((await part(start, end)).equals(content.subarray(start, end + 1))).toBe(true);
      expect(await part(300_000, 300_001)).toEqual(Buffer.alloc(0));
      expect(await blobs.part('no parts', { start: 0, end: 1 })).toBeUndefined();
      await expect(blobs.part('../parts', { start: 0, end: 1 })).rejects.toThrow(InvalidBlobKey);
    });

    test('a large stream goes in and comes out as a stream', async () => {
      const piece = randomBytes(1024 * 1024);
      const pieces = 25;
      const hash = createHash('sha256');
      for (let n = 0; n < pieces; n += 1) hash.update(piece);
      const expected = hash.digest('hex');
      const source = Readable.from(
        (function* () {
          for (let n = 0; n < pieces; n += 1) yield piece;
        })(),
      );
      expect(await blobs.put('large', source)).toMatchObject({ size_bytes: pieces * piece.length, sha256: expected });
      const seen = createHash('sha256');
      for await (const chunk of (await blobs.get('large'))!) seen.update(chunk as Buffer);
      expect(seen.digest('hex')).toBe(expected);
    });

    test('content whose hash the caller knows or keeps goes there as it comes, and nothing of it lies in between', async () => {
      const piece = randomBytes(1024 * 1024);
      const whole = Buffer.concat(Array.from({ length: 25 }, () => piece));
      const spooled: string[] = [];
      const pieces = function* () {
        for (let n = 0; n < 25; n += 1) {
          spooled.push(...readdirSync(tmpdir()).filter((name) => name.startsWith('lumio-upload-')));
          yield piece;
        }
      };
      for (const [key, known] of [
        ['streamed/kept', null],
        ['streamed/known', sha256(whole)],
      ] as const) {
        const options = { sha256: known, about_bytes: whole.length };
        const info = { key, size_bytes: whole.length, sha256: sha256(whole), content_type: 'text/plain' };
        expect(await blobs.put(key, Readable.from(pieces()), 'text/plain', options)).toEqual(info);
        expect((await read(key))!.equals(whole)).toBe(true);
        expect(await blobs.head(key)).toMatchObject({ size_bytes: whole.length, content_type: 'text/plain' });
      }
      expect((await blobs.head('streamed/known'))!.sha256).toBe(sha256(whole));
      expect(spooled).toEqual([]);
      const other = { sha256: sha256(Buffer.from('other')) };
      for (const content of [Readable.from(pieces()), Buffer.from('small')])
        await expect(blobs.put('streamed/other', content, undefined, other)).rejects.toThrow(BlobDamaged);
      expect(await blobs.head('streamed/other')).toBeUndefined();
    });

    test('a failed upload leaves what was there, or nothing', async () => {
      const broken = (bytes: number) =>
        Readable.from(
          (async function* () {
            yield randomBytes(bytes);
            throw new Error('the line is gone');
          })(),
        );
      for (const bytes of [10, 12 * 1024 * 1024]) {
        await expect(blobs.put('never', broken(bytes))).rejects.toThrow('the line is gone');
        await expect(blobs.put('never', broken(bytes), undefined, { sha256: null })).rejects.toThrow(
          'the line is gone',
        );
        expect(await blobs.get('never')).toBeUndefined();
        expect(await blobs.head('never')).toBeUndefined();
        await blobs.put('kept', Buffer.from('first'));
        await expect(blobs.put('kept', broken(bytes))).rejects.toThrow('the line is gone');
        expect((await read('kept'))!.toString()).toBe('first');
      }
      expect(await collect(blobs.list('never'))).toEqual([]);
    });

    test('a reader sees one version whole while writers replace it', async () => {
      const versions = Array.from({ length: 6 }, (_, n) => Buffer.alloc(200_000 + n, n));
      await blobs.put('changing', versions[0]!);
      const writing = Promise.all(versions.map((version) => blobs.put('changing', version)));
      for (let n = 0; n < 20; n += 1) {
        const seen = (await read('changing'))!;
        expect(seen.equals(versions[seen[0]!]!)).toBe(true);
      }
      await writing;
      expect(await collect(blobs.list('changing'))).toHaveLength(1);
    });

    test('lists by prefix in the order of bytes', async () => {
      const keys = ['l/a/b', 'l/a-b', 'l/a.b', 'l/a/c/d', 'l/b', 'l/Z', 'l/ä', 'l/\u{1F600}', 'l/\uFFFD', 'lost'];
      for (const key of keys) await blobs.put(key, Buffer.from(key));
      const sorted = keys
        .filter((key) => key !== 'lost')
        .sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
      const listed = await collect(blobs.list('l/'));
      expect(listed.map(({ key }) => key)).toEqual(sorted);
      const alone: string[] = [];
      for await (const key of blobs.keys('l/')) alone.push(key);
      expect(alone).toEqual(sorted);
      expect(listed[0]).toEqual(await blobs.head(sorted[0]!));
      expect((await collect(blobs.list('l/a/'))).map(({ key }) => key)).toEqual(['l/a/b', 'l/a/c/d']);
      expect((await collect(blobs.list('lo'))).map(({ key }) => key)).toEqual(['lost']);
      expect(await collect(blobs.list('nothing/here'))).toEqual([]);
      await blobs.delete('l/a/c/d');
      expect((await read('l/a/b'))!.toString()).toBe('l/a/b');
    });

    test('deleted is gone; deleting nothing is no error', async () => {
      await blobs.put('d/e/f', Buffer.from('x'));
      await blobs.delete('d/e/f');
      await blobs.delete('d/e/f');
      expect(await blobs.get('d/e/f')).toBeUndefined();
      await blobs.put('d/e/f', Buffer.from('y'));
      expect((await read('d/e/f'))!.toString()).toBe('y');
    });

    test('damaged content fails its reader', async () => {
      await blobs.put('damaged', Buffer.from('a'.repeat(1000)));
      await on.damage('damaged');
      await expect(read('damaged')).rejects.toThrow(BlobDamaged);
    });

    test('refuses what is no key, in every call', async () => {
      const long = ['x'.repeat(201), `${'x/'.repeat(460)}x`];
      const odd = ['', '/', 'a//b', '/a', 'a/', '..', 'a/../b', './a', 'a\\b', 'a\0b', 'a\nb', 'a~b', '\ud800'];
      for (const key of [...odd, ...long]) {
        await expect(blobs.put(key, Buffer.from('x'))).rejects.toThrow(InvalidBlobKey);
        await expect(blobs.get(key)).rejects.toThrow(InvalidBlobKey);
        await expect(blobs.head(key)).rejects.toThrow(InvalidBlobKey);
        await expect(blobs.delete(key)).rejects.toThrow(InvalidBlobKey);
      }
    });
  });
}
