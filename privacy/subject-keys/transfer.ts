import type { Database, Queryable, Row } from '../../engines/postgres/port';
import type { Blobs } from '../../engines/blobs/port';
import { LOCKS } from '../../engines/locks/port';
import type { SecretBox } from '../secrets/port';
import { noteKey, notesOf } from '../../kernel/notes';
import {
  type ExportedErasure,
  type ExportedKey,
  type KeyCounts,
  type KeyHead,
  readLines,
  writeLine,
} from './export-lines';
import { HASH_KEY, shown } from './hashes';
import { contextOf } from './known-keys';
import type { SubjectKeys } from './port';

/**
 * Prefix of notes of erasures in the blob store, so that an older backup and an older key export together cannot bring
 * a key back.
 */
export const ERASURES_PREFIX = 'erasures/';

/** Rows of one line of an export, and of one statement of an import. */
const ROWS = 5000;

/**
 * Exports all subject keys as of one moment, line by line. Every key is wrapped by a master key as in the database, so
 * that the file alone opens nothing. The export includes the list of erasures, which is never trimmed, because only the
 * list keeps keys erased since an older export from coming back. Keep the file apart from backups, and not for long.
 * Design §5.
 */
export async function exportSubjectKeys(db: Database, write: (line: string) => Promise<void>): Promise<KeyCounts> {
  return db.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read read only');
    const [head] = await tx.query<KeyHead & Row>(`select now() as exported_at,
      (select value from installation where name = 'id') as installation_id,
      (select wrapped_key from subject_hash_key) as subject_hash_key`);
    await write(writeLine({ head: head! }));
    const end = { keys: 0, erasures: 0 };
    for (let after = 0; ;) {
      const rows = await tx.query<ExportedErasure & { seq: number }>(
        'select seq, key_id, erased_at from subject_key_erasures where seq > $1 order by seq limit $2',
        [after, ROWS],
      );
      if (rows.length === 0) break;
      after = rows.at(-1)!.seq;
      end.erasures += rows.length;
      await write(writeLine({ erased: rows.map(({ key_id, erased_at }) => ({ key_id, erased_at })) }));
    }
    for (let after = '00000000-0000-0000-0000-000000000000'; ;) {
      const keys = await tx.query<ExportedKey & Row>(
        `select key_id, encode(subject_hash, 'hex') as subject_hash, wrapped_key, created_at, expires_at
         from subject_keys
         where key_id > $1 order by key_id limit $2`,
        [after, ROWS],
      );
      if (keys.length === 0) break;
      after = keys.at(-1)!.key_id;
      end.keys += keys.length;
      await write(writeLine({ keys }));
    }
    await write(writeLine({ end }));
    return end;
  });
}

export interface Imported {
  imported: number;
  /** Keys that were present already. */
  known: number;
  /** Keys that stay destroyed: erased here, in the export's own list, or by a note in the blob store. */
  erased: number;
}

/**
 * Imports keys, {@link ROWS} per transaction, so that an interrupted import continues when it is repeated. Skips every
 * key in one of the three lists of erasures; a key erased between two pages is in the database's own list.
 * @throws Error when the keys are of another installation, subjects here have another hash key, or the export is broken
 */
export async function importSubjectKeys(
  { db, secrets, blobs }: { db: Database; secrets: SecretBox; blobs: Blobs },
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<Imported> {
  // The lock of erasures, so that none happens within a page.
  const page = <T>(work: (tx: Queryable) => Promise<T>): Promise<T> =>
    db.transaction(async (tx) => {
      await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]);
      return work(tx);
    });
  for (const noted of slices(await erasuresIn(blobs))) await page((tx) => note(tx, noted));
  const result: Imported = { imported: 0, known: 0, erased: 0 };
  for await (const line of readLines(lines)) {
    if ('head' in line) await page((tx) => begin(tx, secrets, line.head));
    if ('erased' in line) for (const erased of slices(line.erased)) await page((tx) => note(tx, erased));
    if ('keys' in line)
      for (const keys of slices(line.keys))
        for (const outcome of await page((tx) => bringBack(tx, secrets, keys))) result[outcome] += 1;
  }
  return result;
}

function* slices<T>(rows: readonly T[]): Generator<readonly T[]> {
  for (let at = 0; at < rows.length; at += ROWS) yield rows.slice(at, at + ROWS);
}

async function begin(tx: Queryable, secrets: SecretBox, { installation_id, subject_hash_key }: KeyHead): Promise<void> {
  const [here] = await tx.query(`select value from installation where name = 'id'`);
  if (here!.value !== installation_id) {
    throw new Error(`the keys belong to installation ${installation_id}, this is ${here!.value as string}`);
  }
  if (subject_hash_key !== null) await sameHashKey(tx, secrets, subject_hash_key);
}

async function bringBack(tx: Queryable, secrets: SecretBox, keys: readonly ExportedKey[]): Promise<(keyof Imported)[]> {
  for (const { key_id, wrapped_key } of keys.slice(0, 1)) secrets.open(wrapped_key, contextOf(key_id));
  const rows = await tx.query<{ outcome: keyof Imported }>(
    `with given as (
       select * from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[], $5::timestamptz[])
         g (key_id, subject_hash, wrapped_key, created_at, expires_at)
     ), made as (
       insert into subject_keys (key_id, subject_hash, wrapped_key, created_at, expires_at)
       select key_id, decode(subject_hash, 'hex'), wrapped_key, created_at, expires_at from given g
       where not exists (select from subject_key_erasures e where e.key_id = g.key_id)
       on conflict do nothing returning key_id
     )
     select case when m.key_id is not null then 'imported'
                 when exists (select from subject_key_erasures e where e.key_id = g.key_id) then 'erased'
                 else 'known' end as outcome
     from given g left join made m using (key_id)`,
    [
      keys.map(({ key_id }) => key_id),
      keys.map(({ subject_hash }) => subject_hash),
      keys.map(({ wrapped_key }) => wrapped_key),
      keys.map(({ created_at }) => created_at),
      keys.map(({ expires_at }) => expires_at),
    ],
  );
  return rows.map(({ outcome }) => outcome);
}

/** Records erased keys in the blob store, so that a restore of the database cannot lose the erasures. */
export async function noteErasures(blobs: Blobs, key_ids: readonly string[], erased_at: string): Promise<void> {
  for (const key_id of key_ids) {
    await blobs.put(
      noteKey(ERASURES_PREFIX, key_id, erased_at),
      Buffer.from(JSON.stringify({ key_id, erased_at })),
      'application/json',
    );
  }
}

/** Destroys every key of a person, here and in every backup. Returns how many. */
export async function destroyKeys(
  { blobs, subject_keys }: { blobs: Blobs; subject_keys: Pick<SubjectKeys, 'keysOf' | 'erase'> },
  subject: string,
): Promise<number> {
  // The note is first: after a crash in between, the next run destroys the key, and a restore cannot bring it back.
  await noteErasures(blobs, await subject_keys.keysOf(subject), new Date().toISOString());
  return subject_keys.erase(subject);
}

/**
 * Applies the blob store's notes of these days (default: all) to the database: destroys their keys (again).
 * @returns hash of the subject of each destroyed key, as of {@link SubjectKeys.hashesOf}
 */
export async function applyNotedErasures(db: Database, blobs: Blobs, days?: readonly string[]): Promise<string[]> {
  const hashes: string[] = [];
  for (const noted of slices(await erasuresIn(blobs, days)))
    hashes.push(
      ...(await db.transaction(async (tx) => {
        await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]);
        return note(tx, noted);
      })),
    );
  return hashes;
}

/**
 * Destroys these keys, here and in every backup, and keeps the erasure of their subjects' rows pending. A crash leaves
 * a note, which the hourly job applies. Returns the number of destroyed keys.
 */
export async function destroyKeysOf(db: Database, blobs: Blobs, key_ids: readonly string[]): Promise<number> {
  const erased_at = new Date().toISOString();
  await noteErasures(blobs, key_ids, erased_at);
  const destroyed = await db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]);
    return note(
      tx,
      key_ids.map((key_id) => ({ key_id, erased_at })),
    );
  });
  return destroyed.length;
}

const erasuresIn = async (blobs: Blobs, days?: readonly string[]): Promise<ExportedErasure[]> =>
  (await notesOf(blobs, ERASURES_PREFIX, days)).map((text) => JSON.parse(text) as ExportedErasure);

async function note(tx: Queryable, erasures: readonly ExportedErasure[]): Promise<string[]> {
  const ids = erasures.map(({ key_id }) => key_id);
  await tx.query(
    `insert into subject_key_erasures (key_id, erased_at)
     select distinct on (key_id) key_id, erased_at from unnest($1::uuid[], $2::timestamptz[]) e (key_id, erased_at)
     where not exists (select from subject_key_erasures known where known.key_id = e.key_id)
     order by key_id, erased_at`,
    [ids, erasures.map(({ erased_at }) => erased_at)],
  );
  const gone = await tx.query<{ subject_hash: Buffer }>(
    'delete from subject_keys where key_id = any($1::uuid[]) returning subject_hash',
    [ids],
  );
  const hashes = gone.map(({ subject_hash }) => shown(subject_hash));
  // Rows of the subjects are deleted after this transaction; the facts keep that work pending when the process dies.
  await tx.query(
    `insert into installation (name, value)
     select distinct $1 || hash, hash from unnest($2::text[]) hash on conflict do nothing`,
    [PENDING_ERASURE, hashes],
  );
  return hashes;
}

/** Prefix of facts of `installation`, by subject hash: a note destroyed the subject's keys, its rows still exist. */
const PENDING_ERASURE = 'pending_erasure:';

/** Calls `erase` with the hash of each subject whose rows must still be deleted; a failed one stays pending. */
export async function erasePending(db: Database, erase: (hash: string) => Promise<unknown>): Promise<void> {
  const pending = await db.query<{ value: string }>('select value from installation where starts_with(name, $1)', [
    PENDING_ERASURE,
  ]);
  for (const { value: hash } of pending) {
    await erase(hash);
    await db.query('delete from installation where name = $1', [PENDING_ERASURE + hash]);
  }
}

/** Adopts or compares the hash key, by which subject keys are found: two in one table would hide keys from erasure. */
async function sameHashKey(tx: Queryable, secrets: SecretBox, subject_hash_key: string): Promise<void> {
  const given = secrets.open(subject_hash_key, HASH_KEY);
  const [here] = await tx.query<{ wrapped_key: string }>('select wrapped_key from subject_hash_key for update');
  if (here && secrets.open(here.wrapped_key, HASH_KEY).equals(given)) return;
  const used = await tx.query('select 1 as one from subject_keys limit 1');
  if (used.length > 0)
    throw new Error('keys were made here since the restore: import the export before the first start');
  await tx.query('delete from subject_hash_key');
  await tx.query('insert into subject_hash_key (wrapped_key) values ($1)', [subject_hash_key]);
}
