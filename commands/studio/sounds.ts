import { z } from 'zod';
import { limitOf, PLAN_LIMIT_REACHED } from '../../access/authorization/plan-limits';
import { command, del, feature, notFound, patch, permission, post, type Refuse, upload } from '../../app/operation';
import { actorOf, type Caller } from '../../access/authentication/caller';
import type { Services } from '../../app/services';
import type { Queryable } from '../../engines/postgres/port';
import { cut, MAX_NAME } from '../../domain/studio/names';
import { sniffSound, SOUND_TYPES, sounds, soundsChannel, soundsStream } from '../../domain/studio/sounds';
import { durationOf } from '../../services/studio/audio-pool';
import { fileLink } from '../../services/studio/file-links';
import { pageId } from '../../views/studio/page-ids';
import { Sound, soundOf } from '../../views/studio/sounds';

const SOUNDS = feature('feature:sounds');
const SOUND_NOT_FOUND = { SOUND_NOT_FOUND: notFound('Sound not found') };
/** No plan allows larger files. */
const MAX_BYTES = 100 * 1024 * 1024;
/** JSON of a waveform. */
const MAX_WAVEFORM = 16 * 1024;
const name = z.string().trim().min(1).max(100);

const withoutExtension = (filename: string): string =>
  cut(filename.replace(/\.[^.]*$/, '').trim(), MAX_NAME) || 'Sound';

/** Stores an audio file. Source: spec doc2 §4.2 "Sounds", doc1 §8. */
export const createSound = command({
  name: 'createSound',
  summary: 'Uploads a sound',
  rest: post('/v1/sounds', { status: 201 }),
  graphql: null,
  takes: upload({
    file: 'file',
    most_bytes: MAX_BYTES,
    mostBytes: (account_id, db) => limitOf(db, account_id!, 'max_sound_file_size'),
    too_large_status: 400,
    sniff: sniffSound,
    content_types: [...SOUND_TYPES],
    inUse: async (keys, db) =>
      (await db.query<{ blob_key: string }>('select blob_key from sounds where blob_key = any($1)', [keys])).map(
        ({ blob_key }) => blob_key,
      ),
  }),
  guard: [SOUNDS, permission('sounds:create')],
  input: z.object({ name: name.nullish().describe('Default: the name of the file without its extension') }),
  output: Sound,
  errors: PLAN_LIMIT_REACHED,
  async run({ input, file, caller, act, newId }, { db, blobs }) {
    const { account_id } = caller;
    const sound_id = newId('sound');
    const { filename, content_type, size_bytes, sha256, key: blob_key } = file;
    const [max_sounds, max_bytes] = await Promise.all([
      limitOf(db, account_id, 'max_sounds'),
      limitOf(db, account_id, 'max_sound_storage_bytes'),
    ]);
    const duration_ms = await durationOf(blobs, blob_key, content_type);
    const sound = { filename, content_type, size_bytes, duration_ms };
    const { events } = await act(sounds, soundsStream(account_id), {
      type: 'sound:create',
      ...{ sound_id, account_id, name: input.name ?? withoutExtension(filename), ...sound },
      ...{ blob_key, sha256, created_by: actorOf(caller).user_id, max_sounds, max_bytes },
    });
    // Of a repetition the first, whose upload is the sound's, whatever has become of it since.
    const created = events.find((event) => event.type === 'sound:created')!;
    if (created.blob_key !== blob_key) await blobs.delete(blob_key);
    return {
      ...{ id: sound_id, account_id, name: created.name, ...sound },
      ...{ waveform: null, created_at: created.created_at, source_extension_name: null },
    };
  },
});

/** Changes a sound. */
export const updateSound = command({
  name: 'updateSound',
  summary: 'Changes the name, the length or the waveform of a sound; what is left out stays as it is',
  rest: patch('/v1/sounds/{id}'),
  per_minute: 60,
  graphql: { argument: 'input', flat_arguments: ['id'] },
  guard: [SOUNDS, permission('sounds:edit')],
  input: z
    .object({
      id: z.uuid(),
      name: name.nullish(),
      duration_ms: z.int().min(0).max(86_400_000).nullish(),
      waveform: z
        .unknown()
        .refine(
          (value) => JSON.stringify(value ?? null).length <= MAX_WAVEFORM,
          'waveform is larger than 16 KiB of JSON',
        )
        .nullish()
        .meta({ graphql: 'JSON' }),
    })
    .meta({ id: 'UpdateSoundInput' }),
  output: Sound,
  errors: SOUND_NOT_FOUND,
  async run({ input, caller, act, refuse }, { db }) {
    const row = await soundOf(db, caller.account_id, input.id);
    if (row === undefined) throw refuse('SOUND_NOT_FOUND');
    const { state } = await act(sounds, soundsStream(caller.account_id), {
      type: 'sound:update',
      sound_id: input.id,
      name: input.name ?? undefined,
      duration_ms: input.duration_ms ?? undefined,
      waveform: input.waveform === undefined || input.waveform === null ? undefined : JSON.stringify(input.waveform),
    });
    const { name: newest, duration_ms, waveform } = state[input.id]!;
    return { ...row, name: newest, duration_ms, waveform: waveform === null ? null : JSON.parse(waveform) };
  },
});

/** Deletes a sound and its audio. */
export const deleteSound = command({
  name: 'deleteSound',
  summary: 'Deletes a sound',
  rest: del('/v1/sounds/{id}'),
  guard: [SOUNDS, permission('sounds:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteSoundResult' }),
  errors: SOUND_NOT_FOUND,
  async run({ input: { id: sound_id }, caller, act }) {
    await act(sounds, soundsStream(caller.account_id), { type: 'sound:delete', sound_id });
    return { success: true };
  },
});

const target = z
  .object({ type: z.enum(['widget', 'overlay']), id: z.string().min(1).max(100).describe('Of an overlay its key too') })
  .meta({ id: 'SoundTargetInput' })
  .nullish()
  .describe('Absent: every page that plays sounds');
type Target = z.output<typeof target>;
const TARGET_NOT_FOUND = { TARGET_NOT_FOUND: notFound('Target not found') };

/** The target with the id of the own overlay or widget. @throws DomainError TARGET_NOT_FOUND */
async function ownTarget(
  db: Queryable,
  { account_id, user_id }: { account_id: string; user_id: string | null },
  asked: Target,
  refuse: Refuse<typeof TARGET_NOT_FOUND>,
): Promise<{ type: 'widget' | 'overlay'; id: string } | null> {
  if (!asked) return null;
  const id = await pageId(db, { account_id, user_id }, asked.type, asked.id);
  if (id === null) throw refuse('TARGET_NOT_FOUND');
  return { type: asked.type, id };
}

const SoundSent = z.object({ success: z.boolean() }).meta({ id: 'PlaySoundResult' });

/** Plays a sound on the pages of the account; nothing is stored. Source: spec doc2 §4.2 "Sounds", ruling c17. */
export const playSound = command({
  name: 'playSound',
  summary: 'Plays a sound on the widgets and overlays of the account',
  rest: post('/v1/sounds/{id}/play', { envelope: 'bare' }),
  guard: [SOUNDS, permission('sounds:play')],
  input: z.object({ id: z.uuid(), volume: z.number().min(0).max(1).nullish().describe('Default 1.0'), target }),
  output: SoundSent,
  errors: { ...SOUND_NOT_FOUND, ...TARGET_NOT_FOUND },
  async run({ input, caller, context, refuse }, services) {
    const { account_id } = caller;
    const sound = await soundOf(services.db, account_id, input.id);
    if (sound === undefined) throw refuse('SOUND_NOT_FOUND');
    const aimed = await ownTarget(services.db, caller, input.target, refuse);
    await send(services, caller, 'sound:play', {
      sound_id: sound.id,
      url: await fileLink(services.hashes, { kind: 'sound', id: sound.id, account_id }, context.now),
      volume: input.volume ?? 1,
      target: aimed,
    });
    return { success: true };
  },
});

/** Stops a sound. */
export const stopSound = command({
  name: 'stopSound',
  summary: 'Stops a sound on the widgets and overlays of the account',
  rest: post('/v1/sounds/{id}/stop', { envelope: 'bare' }),
  guard: [SOUNDS, permission('sounds:play')],
  input: z.object({ id: z.uuid(), target }),
  output: SoundSent,
  errors: { ...SOUND_NOT_FOUND, ...TARGET_NOT_FOUND },
  async run({ input, caller, refuse }, services) {
    const sound = await soundOf(services.db, caller.account_id, input.id);
    if (sound === undefined) throw refuse('SOUND_NOT_FOUND');
    const aimed = await ownTarget(services.db, caller, input.target, refuse);
    await send(services, caller, 'sound:stop', { sound_id: sound.id, target: aimed });
    return { success: true };
  },
});

async function send(
  { live }: Pick<Services, 'live'>,
  { account_id }: Pick<Caller, 'account_id'>,
  event_type: string,
  data: object,
): Promise<void> {
  const channel = soundsChannel(account_id!);
  await live.broadcast(channel, { type: 'event', channel, event_type, data });
}
