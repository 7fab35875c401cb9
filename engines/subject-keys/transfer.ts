import type { Database, Queryable, Row } from '../postgres/port';
import type { Blobs } from '../blobs/port';
import { LOCKS } from '../locks/port';
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
 * Where erasures are noted beside the database: an older backup and an older key export together must not bring a key
 * back.
 */
export const ERASURES_PREFIX = 'erasures/';

/** Rows of one line of an export, and of one statement of an import. */
const ROWS = 5000;

/**
 * Everything that makes personal data readable, as of one moment, line by line; every key is wrapped by a master key as
 * in the database, so the file alone opens nothing. The list of erasures goes with it and is never trimmed: an export
 * of any age may be imported, and only the list keeps what was erased since from coming back. Keep it apart from
 * backups, and not for long. Design §5.
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
  /** Were here already. */
  known: number;
  /** Stay destroyed: erased here, in the export's own list, or by a note in the blob store. */
  erased: number;
}

/**
 * Brings keys back, in one transaction, line by line. A key that was ever erased does not come back, whichever of the
 * three lists says so.
 * @throws Error when the keys are of another installation, subjects here are found by another hash key, or the export
 * is broken
 */
export async function importSubjectKeys(
  { db, secrets, blobs }: { db: Database; secrets: SecretBox; blobs: Blobs },
  lines: AsyncIterable<string> | Iterable<string>,
): Promise<Imported> {
  const noted = await erasuresIn(blobs);
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]); // as an erasure does: none happens meanwhile
    const result: Imported = { imported: 0, known: 0, erased: 0 };
    await note(tx, noted);
    for await (const line of readLines(lines)) {
      if ('head' in line) await begin(tx, secrets, line.head);
      if ('erased' in line) await note(tx, line.erased);
      if ('keys' in line)
        for (let at = 0; at < line.keys.length; at += ROWS)
          for (const outcome of await bringBack(tx, secrets, line.keys.slice(at, at + ROWS))) result[outcome] += 1;
    }
    return result;
  });
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

/** Writes down beside the database which keys were erased, so that no restore can forget it. */
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
  // The note comes first: a crash in between leaves a key that the next run destroys, never a key that a restore brings
  // back.
  await noteErasures(blobs, await subject_keys.keysOf(subject), new Date().toISOString());
  return subject_keys.erase(subject);
}

/**
 * Applies the blob store's notes of these days (default: all) to the database: what they name is destroyed (again).
 * @returns hashes of the subjects whose keys went, as {@link SubjectKeys.hashesOf} gives them; one for each key
 */
export async function applyNotedErasures(db: Database, blobs: Blobs, days?: readonly string[]): Promise<string[]> {
  const noted = await erasuresIn(blobs, days);
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]);
    return note(tx, noted);
  });
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
  // Their rows go after this transaction: a process that is killed before leaves the work to the next one.
  await tx.query(
    `insert into installation (name, value)
     select distinct $1 || hash, hash from unnest($2::text[]) hash on conflict do nothing`,
    [PENDING_ERASURE, hashes],
  );
  return hashes;
}

/** Facts of `installation`, by subject hash: the keys of the subject went by a note, its rows have not yet. */
const PENDING_ERASURE = 'pending_erasure:';

/** Calls `erase` with the hash of each subject whose rows are still to go; one that fails stays pending. */
export async function erasePending(db: Database, erase: (hash: string) => Promise<unknown>): Promise<void> {
  const pending = await db.query<{ value: string }>('select value from installation where starts_with(name, $1)', [
    PENDING_ERASURE,
  ]);
  for (const { value: hash } of pending) {
    await erase(hash);
    await db.query('delete from installation where name = $1', [PENDING_ERASURE + hash]);
  }
}

/** The hash key finds a subject's key; two different ones in one table would hide keys from their erasure. */
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
