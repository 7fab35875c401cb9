import { z } from 'zod';
import { limitOf } from '../../access/authorization/plan-limits';
import { download, feature, get, notFound, permission, query, signedLink } from '../../app/operation';
import { SOUND_TYPES } from '../../domain/studio/sounds';
import { sentFile, LINK_MEMBERS } from './files';
import { Sound, soundAudioOf, soundOf, soundsOf } from '../../views/studio/sounds';

const SOUNDS = feature('feature:sounds');
const SOUND_NOT_FOUND = { SOUND_NOT_FOUND: notFound('Sound not found') };

const SoundList = z
  .object({
    sounds: z.array(Sound),
    total_count: z.int().describe('Sounds that match'),
    user_sound_count: z.int().describe("The account's own, without those of extensions"),
    max_sounds: z.int(),
    max_sound_file_size: z.int(),
    max_sound_storage_bytes: z.int(),
    used_storage_bytes: z.int(),
  })
  .meta({ id: 'SoundList' });

/** The account's sounds. Source: spec doc2 §2.13, §4.2 "Sounds". */
export const sounds = query({
  name: 'sounds',
  summary: "The account's sounds, newest first, and how many there may be",
  rest: get('/v1/sounds'),
  guard: [SOUNDS, permission('sounds:read')],
  input: z.object({
    limit: z.int().min(1).max(100).nullish().describe('Default 20, at most 100'),
    offset: z.int().min(0).max(10_000).nullish().describe('Default 0'),
    search: z.string().max(100).nullish().describe('Part of the name, whatever its case'),
  }),
  output: SoundList,
  async run({ input, caller }, { db }) {
    const { account_id } = caller;
    const page = { search: input.search || null, limit: input.limit ?? 20, offset: input.offset ?? 0 };
    const [found, max_sounds, max_sound_file_size, max_sound_storage_bytes] = await Promise.all([
      soundsOf(db, account_id, page),
      limitOf(db, account_id, 'max_sounds'),
      limitOf(db, account_id, 'max_sound_file_size'),
      limitOf(db, account_id, 'max_sound_storage_bytes'),
    ]);
    return { ...found, max_sounds, max_sound_file_size, max_sound_storage_bytes };
  },
});

export const sound = query({
  name: 'sound',
  summary: 'One sound of the account',
  rest: get('/v1/sounds/{id}'),
  guard: [SOUNDS, permission('sounds:read')],
  input: z.object({ id: z.uuid() }),
  output: Sound,
  errors: SOUND_NOT_FOUND,
  async run({ input, caller, refuse }, { db }) {
    const found = await soundOf(db, caller.account_id, input.id);
    if (found === undefined) throw refuse('SOUND_NOT_FOUND');
    return found;
  },
});

/** The audio, by a signed link or with `sounds:read`. Source: ruling c17. */
export const soundStream = query({
  name: 'soundStream',
  summary: 'The audio of a sound',
  rest: get('/v1/sounds/{id}/stream'),
  graphql: null,
  sends: download(...SOUND_TYPES),
  guard: [signedLink('sound'), SOUNDS, permission('sounds:read')],
  input: z.object({ id: z.uuid(), ...LINK_MEMBERS }),
  output: z.object({}),
  errors: SOUND_NOT_FOUND,
  async run({ input: { id }, caller, refuse }, { db, blobs }) {
    const found = await soundAudioOf(db, id);
    if (found === undefined || found.account_id !== caller.account_id) throw refuse('SOUND_NOT_FOUND');
    return sentFile(blobs, found);
  },
});
