import type { Database, Queryable } from '../postgres/port';
import type { Blobs } from '../blobs/port';
import { LOCKS } from '../locks/port';
import type { SecretBox } from '../secrets/port';
import { buffer } from 'node:stream/consumers';
import { z } from 'zod';
import { contextOf, HASH_KEY } from './postgres';

/** Where erasures are noted beside the database: an older backup and an older key export together must not bring a key back. */
export const ERASURES_PREFIX = 'erasures/';

/** A key export: every key wrapped by a master key as in the database, so the file alone opens nothing. */
export const KeyExport = z.object({
  format: z.literal(1),
  installation_id: z.string(),
  exported_at: z.string(),
  /** Key of the keyed hash under which subjects are found; null when nobody's key was ever made. */
  subject_hash_key: z.string().nullable(),
  keys: z.array(
    z.object({ key_id: z.uuid(), subject_hash: z.string(), wrapped_key: z.string(), created_at: z.string() }),
  ),
  erasures: z.array(z.object({ key_id: z.uuid(), erased_at: z.string() })),
});
export type KeyExport = z.infer<typeof KeyExport>;

/**
 * Everything that makes personal data readable, as of one moment. The list of erasures goes with it and is never trimmed: an export of any age
 * may be imported, and only the list keeps what was erased since from coming back. Keep it apart from backups, and not for long. Design §5. */
export async function exportSubjectKeys(db: Database): Promise<KeyExport> {
  return db.transaction(async (tx) => {
    await tx.query('set transaction isolation level repeatable read read only');
    const [facts] =
      await tx.query(`select now() as exported_at, (select value from installation where name = 'id') as installation_id,
      (select wrapped_key from subject_hash_key) as subject_hash_key`);
    return {
      format: 1,
      installation_id: facts!.installation_id as string,
      exported_at: facts!.exported_at as string,
      subject_hash_key: facts!.subject_hash_key as string | null,
      keys: await tx.query(
        `select key_id, encode(subject_hash, 'hex') as subject_hash, wrapped_key, created_at from subject_keys order by created_at, key_id`,
      ),
      erasures: await tx.query('select key_id, erased_at from subject_key_erasures order by seq'),
    };
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
 * Brings keys back, in one transaction. A key that was ever erased does not come back, whichever of the three lists says so.
 * @throws Error when the keys are of another installation, or subjects here are found by another hash key
 */
export async function importSubjectKeys(
  { db, secrets, blobs }: { db: Database; secrets: SecretBox; blobs: Blobs },
  file: KeyExport,
): Promise<Imported> {
  const noted = await erasuresIn(blobs);
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]); // as an erasure does: none happens meanwhile
    const [here] = await tx.query(`select value from installation where name = 'id'`);
    if (here!.value !== file.installation_id) {
      throw new Error(`the keys belong to installation ${file.installation_id}, this is ${here!.value as string}`);
    }
    await sameHashKey(tx, secrets, file);
    await note(tx, [...file.erasures, ...noted]);
    const rows = await tx.query<{ outcome: 'imported' | 'known' | 'erased' }>(
      `with given as (
         select * from unnest($1::uuid[], $2::text[], $3::text[], $4::timestamptz[]) g (key_id, subject_hash, wrapped_key, created_at)
       ), made as (
         insert into subject_keys (key_id, subject_hash, wrapped_key, created_at)
         select key_id, decode(subject_hash, 'hex'), wrapped_key, created_at from given
         where key_id not in (select key_id from subject_key_erasures)
         on conflict do nothing returning key_id
       )
       select case when g.key_id in (select key_id from made) then 'imported'
                   when g.key_id in (select key_id from subject_key_erasures) then 'erased' else 'known' end as outcome
       from given g`,
      [
        file.keys.map(({ key_id }) => key_id),
        file.keys.map(({ subject_hash }) => subject_hash),
        file.keys.map(({ wrapped_key }) => wrapped_key),
        file.keys.map(({ created_at }) => created_at),
      ],
    );
    const count = (outcome: string) => rows.filter((row) => row.outcome === outcome).length;
    return { imported: count('imported'), known: count('known'), erased: count('erased') };
  });
}

/** Writes down beside the database which keys were erased, so that no restore can forget it. */
export async function noteErasures(blobs: Blobs, key_ids: readonly string[], erased_at: string): Promise<void> {
  for (const key_id of key_ids) {
    await blobs.put(
      `${ERASURES_PREFIX}${key_id}.json`,
      Buffer.from(JSON.stringify({ key_id, erased_at })),
      'application/json',
    );
  }
}

/** Applies the blob store's notes to the database: what they name is destroyed (again). Returns how many keys went. */
export async function applyNotedErasures(db: Database, blobs: Blobs): Promise<number> {
  const noted = await erasuresIn(blobs);
  return db.transaction(async (tx) => {
    await tx.query('select pg_advisory_xact_lock($1)', [LOCKS.subject_keys]);
    return note(tx, noted);
  });
}

async function erasuresIn(blobs: Blobs): Promise<KeyExport['erasures']> {
  const found: KeyExport['erasures'] = [];
  for await (const { key } of blobs.list(ERASURES_PREFIX)) {
    const content = await blobs.get(key);
    if (content) found.push(JSON.parse((await buffer(content)).toString()) as KeyExport['erasures'][number]);
  }
  return found;
}

async function note(tx: Queryable, erasures: KeyExport['erasures']): Promise<number> {
  const ids = erasures.map(({ key_id }) => key_id);
  await tx.query(
    `insert into subject_key_erasures (key_id, erased_at)
     select distinct on (key_id) key_id, erased_at from unnest($1::uuid[], $2::timestamptz[]) e (key_id, erased_at)
     where key_id not in (select key_id from subject_key_erasures) order by key_id, erased_at`,
    [ids, erasures.map(({ erased_at }) => erased_at)],
  );
  return (await tx.query('delete from subject_keys where key_id = any($1::uuid[]) returning 1 as one', [ids])).length;
}

/** The hash key finds a subject's key; two different ones in one table would hide keys from their erasure. */
async function sameHashKey(tx: Queryable, secrets: SecretBox, { subject_hash_key, keys }: KeyExport): Promise<void> {
  if (subject_hash_key === null) return;
  const given = secrets.open(subject_hash_key, HASH_KEY);
  for (const { key_id, wrapped_key } of keys.slice(0, 1)) secrets.open(wrapped_key, contextOf(key_id));
  const [here] = await tx.query<{ wrapped_key: string }>('select wrapped_key from subject_hash_key for update');
  if (here && secrets.open(here.wrapped_key, HASH_KEY).equals(given)) return;
  const used = await tx.query('select 1 as one from subject_keys limit 1');
  if (used.length > 0)
    throw new Error('keys were made here since the restore: import the export before the first start');
  await tx.query('delete from subject_hash_key');
  await tx.query('insert into subject_hash_key (wrapped_key) values ($1)', [subject_hash_key]);
}
