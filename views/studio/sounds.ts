import { z } from 'zod';
import type { Queryable } from '../../engines/postgres/port';
import { literal } from '../../kernel/sql';

/** A sound of an account. Source: spec doc2 §2.13. */
export const Sound = z
  .object({
    id: z.uuid(),
    account_id: z.uuid(),
    name: z.string(),
    filename: z.string(),
    content_type: z.string(),
    size_bytes: z.int(),
    duration_ms: z.int().nullable().describe('Null where the file does not have it'),
    waveform: z.unknown().nullable().meta({ graphql: 'JSON' }),
    created_at: z.string().meta({ format: 'date-time' }),
    source_extension_name: z.string().nullable().describe('Of a sound that an extension brought'),
  })
  .meta({ id: 'Sound' });
export type Sound = z.output<typeof Sound>;

/** The audio of a sound. */
export interface SoundAudio {
  content_type: string;
  size_bytes: number;
  blob_key: string;
  sha256: string;
}

const SOUND = `id, account_id, name, filename, content_type, size_bytes, duration_ms, waveform, created_at,
  null::text as source_extension_name`;

/** A page of the account's sounds, newest first, with the sums of all. */
export async function soundsOf(
  db: Queryable,
  account_id: string,
  { search, limit, offset }: { search: string | null; limit: number; offset: number },
): Promise<{ sounds: Sound[]; total_count: number; user_sound_count: number; used_storage_bytes: number }> {
  const part = search === null ? null : `%${literal(search)}%`;
  const [sums] = await db.query<{ total_count: number; user_sound_count: number; used_storage_bytes: number }>(
    `select count(*) filter (where $2::text is null or name ilike $2) as total_count, count(*) as user_sound_count,
       coalesce(sum(size_bytes), 0)::bigint as used_storage_bytes
     from sounds where account_id = $1`,
    [account_id, part],
    'sound-sums',
  );
  const rows = await db.query<Sound & Record<string, unknown>>(
    `select ${SOUND} from sounds where account_id = $1 and ($2::text is null or name ilike $2)
     order by created_at desc, id limit $3 offset $4`,
    [account_id, part, limit, offset],
    'sounds',
  );
  return { sounds: rows, ...sums! };
}

export async function soundOf(db: Queryable, account_id: string, id: string): Promise<Sound | undefined> {
  const [row] = await db.query<Sound & Record<string, unknown>>(
    `select ${SOUND} from sounds where account_id = $1 and id = $2`,
    [account_id, id],
    'sound',
  );
  return row;
}

/** The audio of a sound, and whose it is. */
export async function soundAudioOf(
  db: Queryable,
  id: string,
): Promise<(SoundAudio & { account_id: string }) | undefined> {
  const [row] = await db.query<SoundAudio & { account_id: string } & Record<string, unknown>>(
    'select account_id, content_type, size_bytes, blob_key, sha256 from sounds where id = $1',
    [id],
    'sound-audio',
  );
  return row;
}
