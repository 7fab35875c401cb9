import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { v4 } from 'uuid';
import { checkKeyExport, keyLines } from '../../cli/keys';
import { createFileBlobs } from '../../engines/blobs/files';
import type { Blobs } from '../../engines/blobs/port';
import { createSecretBox } from '../../privacy/secrets/box';
import { parseMasterKeys } from '../../privacy/secrets/master-keys';
import { createSubjectKeys } from '../../privacy/subject-keys/postgres';
import { exportSubjectKeys, importSubjectKeys, noteErasures } from '../../privacy/subject-keys/transfer';
import { type TestDatabase, testDatabase } from '../support/database';

const master_keys = parseMasterKeys(`test:${Buffer.alloc(32, 7).toString('base64')}`);
const secrets = createSecretBox(master_keys);
/** More than one line and one statement hold. */
const MANY = 12_000;

let t: TestDatabase;
let folder: string;
let blobs: Blobs;
let lines: string[];
beforeAll(async () => {
  t = await testDatabase();
  folder = mkdtempSync(join(tmpdir(), 'lumio-key-export-'));
  blobs = await createFileBlobs(join(folder, 'blobs'));
  const keys = createSubjectKeys({ db: t.db, master_keys });
  await keys.forWriting(['kick:1', 'kick:2', 'kick:3']);
  await keys.erase('kick:2');
  const more = Array.from({ length: MANY }, () => v4());
  await t.db.query(
    `insert into subject_keys (key_id, subject_hash, wrapped_key)
     select id, sha256(id::text::bytea), wrapped from unnest($1::uuid[], $2::text[]) k (id, wrapped)`,
    [more, more.map((key_id) => secrets.seal(Buffer.alloc(32), `subject-key:${key_id}`))],
  );
  lines = [];
  await exportSubjectKeys(t.db, async (line) => void lines.push(line));
});
afterAll(async () => {
  await blobs?.close();
  await t?.drop();
  rmSync(folder, { recursive: true, force: true });
});

/** A database of the same installation without keys. */
async function emptied<T>(work: (db: TestDatabase['db']) => Promise<T>): Promise<T> {
  const fresh = await testDatabase();
  try {
    const [{ id } = {}] = await t.db.query(`select value as id from installation where name = 'id'`);
    await fresh.db.query(`update installation set value = $1 where name = 'id'`, [id]);
    return await work(fresh.db);
  } finally {
    await fresh.drop();
  }
}
const stored = (db: TestDatabase['db']) =>
  db.query(`select key_id, encode(subject_hash, 'hex') as hash, wrapped_key, created_at from subject_keys order by 1`);
describe('a key export', () => {
  test('is written and read line by line, none of which grows with the number of people', async () => {
    expect(lines.length).toBeGreaterThan(4);
    for (const line of lines) expect(line.length).toBeLessThan(2_000_000);
    await emptied(async (db) => {
      expect(await importSubjectKeys({ db, secrets, blobs }, lines)).toEqual({
        imported: MANY + 2,
        known: 0,
        erased: 0,
      });
      expect(await stored(db)).toEqual(await stored(t.db));
      expect(await db.query('select key_id from subject_key_erasures')).toHaveLength(1);
      expect(await importSubjectKeys({ db, secrets, blobs }, lines)).toEqual({
        imported: 0,
        known: MANY + 2,
        erased: 0,
      });
    });
  });

  test('that is cut off while it is imported continues with the pages that are missing', async () => {
    const killed = function* () {
      let pages = 0;
      for (const line of lines) {
        if (line.startsWith('{"keys"') && (pages += 1) > 2) throw new Error('killed');
        yield line;
      }
    };
    await emptied(async (db) => {
      await expect(importSubjectKeys({ db, secrets, blobs }, killed())).rejects.toThrow('killed');
      expect(await stored(db)).toHaveLength(10_000);
      // Between two pages a person of the first one is erased.
      const [{ key_id } = {}] = await stored(db);
      await noteErasures(blobs, [key_id as string], new Date().toISOString());
      expect(await importSubjectKeys({ db, secrets, blobs }, lines)).toEqual({
        imported: MANY + 2 - 10_000,
        known: 9_999,
        erased: 1,
      });
      expect(await stored(db)).toHaveLength(MANY + 1);
    });
    for await (const key of blobs.keys('erasures/')) await blobs.delete(key);
  });

  test('of the build before, one line with everything, is read as well', async () => {
    const parsed = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
    const { format: _format, ...head } = parsed[0]!;
    const whole = JSON.stringify({
      ...{ format: 1, ...head },
      keys: parsed.flatMap(({ keys }) => keys ?? []),
      erasures: parsed.flatMap(({ erased }) => erased ?? []),
    });
    const file = join(folder, 'old.json');
    writeFileSync(file, `${whole}\n`);
    await checkKeyExport(file);
    await emptied(async (db) => {
      expect(await importSubjectKeys({ db, secrets, blobs }, keyLines(file))).toMatchObject({ imported: MANY + 2 });
      expect(await stored(db)).toEqual(await stored(t.db));
    });
  });

  test.each([
    ['nothing', () => [], 'it is empty'],
    ['a text', () => ['keys\n'], 'line 1 is no JSON'],
    ['another document', () => ['{"format":3}\n'], 'its form is not one that this program knows'],
    ['a part of one', () => lines.slice(0, -1), 'it was cut off'],
    ['one without a line', () => lines.filter((_, n) => n !== 2), 'lines are missing'],
    ['one and more', () => [...lines, lines[1]!], 'comes after its end'],
    ['one with a broken line', () => [lines[0]!, '{"keys":[{"key_id":"x"}]}\n'], 'line 2 is of no form'],
  ])('%s is refused in one line', async (name, of, why) => {
    const file = join(folder, `${name}-${v4()}`);
    writeFileSync(file, of().join(''));
    await expect(checkKeyExport(file)).rejects.toThrow(why);
    await emptied(async (db) => {
      await expect(importSubjectKeys({ db, secrets, blobs }, of())).rejects.toThrow(why);
    });
  });
});
