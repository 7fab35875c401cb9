import { z } from 'zod';
import type { Blobs } from '../../engines/blobs/port';
import type { Queryable } from '../../engines/postgres/port';
import type { Eraser } from '../../kernel/eraser';
import { noteKey, notesOf } from '../../kernel/notes';
import { profile, profileStream } from '../../domain/identity/profiles';
import type { Act } from '../../app/write-path/act';
import { displayNameInput } from '../../app/name-inputs';

/** Name and picture of a person, from the provider of their first login. Source: spec doc1 §1. */
export interface Profile {
  user_id: string;
  display_name: string;
  avatar_url: string | null;
  email: string | null;
}

/** Prefix of the erasure notes in the blob store, which keep a restored backup from bringing a profile back. */
const NOTES_PREFIX = 'erased-profiles/';
const Note = z.object({ user_id: z.uuid(), erased_at: z.iso.datetime() });

/** Replaces a user's profile. No event carries it (domain/identity/users.ts). */
export async function writeProfile(
  db: Pick<Queryable, 'query'>,
  { user_id, display_name, avatar_url, email }: Profile,
): Promise<void> {
  await db.query(
    `insert into profiles (user_id, display_name, avatar_url, email) values ($1, $2, $3, $4)
     on conflict (user_id) do update
       set display_name = excluded.display_name, avatar_url = excluded.avatar_url, email = excluded.email,
         updated_at = clock_timestamp()`,
    [user_id, display_name, avatar_url, email],
    'profile-write',
  );
}

/** Common members of a person's record. Source: spec doc2 §2.3. */
export const personal = {
  id: z.uuid(),
  display_name: z.string(),
  email: z.string().nullable(),
  avatar_url: z.string().nullable(),
  created_at: z.string().meta({ format: 'date-time' }),
};

/** The members of an input that changes a profile. */
export const profileInput = {
  display_name: displayNameInput(
    'display_name must not be empty',
    'display_name must be 100 characters or less',
  ).optional(),
  email: z.email('email must be an e-mail address').max(254).nullish().describe('Null takes it away'),
};

/** Change of a profile by the person or an operator; an absent member stays. */
export interface ProfileChanges {
  display_name?: string | undefined;
  /** Null removes the address. */
  email?: string | null | undefined;
}

/**
 * Changes a person's name and address. The event is appended first, so that no change lacks one; a retry completes a
 * change that was interrupted after it.
 */
export async function changeProfile(act: Act, db: Queryable, user_id: string, changes: ProfileChanges): Promise<void> {
  const { display_name, email } = changes;
  if (display_name === undefined && email === undefined) return;
  const [row] = await db.query<{ display_name: string; email: string | null }>(
    'select display_name, email from profiles where user_id = $1',
    [user_id],
    'profile-named',
  );
  const before = { display_name: row?.display_name ?? null, email: row?.email ?? null };
  const after = {
    display_name: display_name ?? before.display_name,
    email: email === undefined ? before.email : email,
  };
  await act(profile, profileStream(user_id), { type: 'profile:change', user_id, before, after });
  await db.query(
    `insert into profiles (user_id, display_name, email) values ($1, coalesce($2, ''), $3)
     on conflict (user_id) do update set display_name = coalesce($2, profiles.display_name),
       email = case when $4 then excluded.email else profiles.email end, updated_at = clock_timestamp()`,
    [user_id, display_name ?? null, email ?? null, email !== undefined],
    'profile-change',
  );
}

/** Null without a profile, also after its erasure. */
export async function readProfile(db: Queryable, user_id: string): Promise<Profile | null> {
  const [row] = await db.query<Profile & Record<string, unknown>>(
    'select user_id, display_name, avatar_url, email from profiles where user_id = $1',
    [user_id],
    'profile-read',
  );
  return row ?? null;
}

/** Existing profiles of these users, by user id. */
export async function readProfiles(db: Queryable, user_ids: readonly string[]): Promise<Map<string, Profile>> {
  if (user_ids.length === 0) return new Map();
  const rows = await db.query<Profile & Record<string, unknown>>(
    'select user_id, display_name, avatar_url, email from profiles where user_id = any($1::uuid[])',
    [user_ids],
    'profiles-read',
  );
  return new Map(rows.map((row) => [row.user_id, row]));
}

/**
 * Erases a profile and the providers' data of the person's logins for good, in restored backups too. Idempotent. True
 * when there was something to erase.
 */
export async function eraseProfile(deps: { db: Queryable; blobs: Blobs }, user_id: string): Promise<boolean> {
  const [{ erased_at } = {}] = await deps.db.query('select clock_timestamp() as erased_at');
  const note = Note.parse({ user_id, erased_at });
  // The note comes first: a crash in between leaves a row that the next run deletes, not one that a restore brings
  // back.
  await deps.blobs.put(
    noteKey(NOTES_PREFIX, user_id, note.erased_at),
    Buffer.from(JSON.stringify(note)),
    'application/json',
  );
  const rows = await deps.db.query(
    `with profile as (delete from profiles where user_id = $1 returning 1),
       grants as (delete from login_grants where user_id = $1 returning 1)
     select 1 from profile union all select 1 from grants`,
    [user_id],
  );
  return rows.length > 0;
}

export const profileEraser: Eraser = {
  tables: ['profiles', 'login_grants'],
  async names({ kind, id }, { db }) {
    if (kind !== 'user') return false;
    const rows = await db.query(
      'select 1 as one from profiles where user_id = $1 union all select 1 from login_grants where user_id = $1 limit 1',
      [id],
    );
    return rows.length > 0;
  },
  async erase({ kind, id }, services) {
    if (kind !== 'user') return null;
    return (await eraseProfile(services, id)) ? 'profile erased' : null;
  },
};

/**
 * Deletes erased profiles that a restored backup brought back, by the notes of these days (default: all). Returns the
 * number of profiles deleted.
 */
export async function applyErasedProfiles(
  { db, blobs }: { db: Queryable; blobs: Blobs },
  days?: readonly string[],
): Promise<number> {
  let erased = 0;
  for (const text of await notesOf(blobs, NOTES_PREFIX, days)) {
    const { user_id, erased_at } = Note.parse(JSON.parse(text));
    const rows = await db.query(
      `with grants as (delete from login_grants where user_id = $1 and updated_at <= $2),
         former as (delete from former_logins where user_id = $1 and ended_at <= $2)
       delete from profiles where user_id = $1 and updated_at <= $2 returning 1 as one`,
      [user_id, erased_at],
    );
    erased += rows.length;
  }
  return erased;
}
