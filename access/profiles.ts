import { z } from 'zod';
import type { Blobs } from '../engines/blobs/port';
import type { Queryable } from '../engines/postgres/port';
import type { Eraser } from '../kernel/eraser';
import { noteKey, notesOf } from '../kernel/notes';
import { profile, profileStream } from '../domain/profiles';
import type { Act } from './act';
import { givenName } from './names';

/** What a person is called and looks like, as the provider of their first login said. Source: spec doc1 §1. */
export interface Profile {
  user_id: string;
  display_name: string;
  avatar_url: string | null;
  email: string | null;
}

/** Erasures are noted here beside the database: a restored backup must not bring a profile back. */
const NOTES_PREFIX = 'erased-profiles/';
const Note = z.object({ user_id: z.uuid(), erased_at: z.iso.datetime() });

/** Writes what is said now over what was said before. No event carries it (domain/users.ts). */
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

/** What a record of a person begins with. Source: spec doc2 §2.3. */
export const personal = {
  id: z.uuid(),
  display_name: z.string(),
  email: z.string().nullable(),
  avatar_url: z.string().nullable(),
  created_at: z.string().meta({ format: 'date-time' }),
};

/** The members of an input that changes a profile. */
export const profileInput = {
  display_name: givenName('display_name must not be empty', 'display_name must be 100 characters or less').optional(),
  email: z.email('email must be an e-mail address').max(254).nullish().describe('Null takes it away'),
};

/** What a person, or an operator, changes of a profile; what is left out stays. */
export interface ProfileChanges {
  display_name?: string | undefined;
  /** Null takes it away. */
  email?: string | null | undefined;
}

/**
 * Changes what a person is called and written to by. The event comes first: a change that was cut off after it is made
 * by the next try, and none is ever without one.
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

/** Null for a user who never had one, or whose profile was erased. */
export async function readProfile(db: Queryable, user_id: string): Promise<Profile | null> {
  const [row] = await db.query<Profile & Record<string, unknown>>(
    'select user_id, display_name, avatar_url, email from profiles where user_id = $1',
    [user_id],
    'profile-read',
  );
  return row ?? null;
}

/** Those of these users who have one, by the user's id. */
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
 * Erases a profile, and what providers said of the person's logins, for good, in restored backups too. Run twice it
 * does the same. True when there was one.
 */
export async function eraseProfile(deps: { db: Queryable; blobs: Blobs }, user_id: string): Promise<boolean> {
  const [{ erased_at } = {}] = await deps.db.query('select clock_timestamp() as erased_at');
  const note = Note.parse({ user_id, erased_at });
  // The note comes first: a crash in between leaves a row that the next run deletes, never one that a restore brings
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
  async erase({ kind, id }, services) {
    if (kind !== 'user') return null;
    return (await eraseProfile(services, id)) ? 'profile erased' : 'no profile is there';
  },
};

/**
 * Deletes what a restored backup brought back although it was erased, by the notes of these days (default: all).
 * Returns how many profiles went.
 */
export async function applyErasedProfiles(
  { db, blobs }: { db: Queryable; blobs: Blobs },
  days?: readonly string[],
): Promise<number> {
  let erased = 0;
  for (const text of await notesOf(blobs, NOTES_PREFIX, days)) {
    const { user_id, erased_at } = Note.parse(JSON.parse(text));
    const rows = await db.query(
      `with grants as (delete from login_grants where user_id = $1 and updated_at <= $2)
       delete from profiles where user_id = $1 and updated_at <= $2 returning 1 as one`,
      [user_id, erased_at],
    );
    erased += rows.length;
  }
  return erased;
}
