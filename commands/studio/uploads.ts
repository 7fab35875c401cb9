import { z } from 'zod';
import { actorOf } from '../../access/authentication/caller';
import { limitOf, PLAN_LIMIT_REACHED } from '../../access/authorization/plan-limits';
import { command, del, invalid, notFound, permission, post, upload, type Refuse } from '../../app/operation';
import { cut } from '../../domain/studio/names';
import {
  isImageType,
  sniffUpload,
  UPLOAD_PURPOSES,
  UPLOAD_TYPES,
  uploads,
  uploadsStream,
} from '../../domain/studio/uploads';
import type { Blobs } from '../../engines/blobs/port';
import type { UploadedFile } from '../../kernel/operations/transfers';
import { fileLink } from '../../services/studio/file-links';
import { BadImage, encodeAgain, MAX_PIXELS, TooManyImages } from '../../services/studio/images';
import { Upload } from '../../views/studio/uploads';

/** No plan allows larger files. */
const MAX_BYTES = 100 * 1024 * 1024;
const MAX_FILENAME = 255;

const IMAGE_ERRORS = {
  DAMAGED: invalid('file: is damaged'),
  TOO_MANY_PIXELS: invalid(`file: has more than ${MAX_PIXELS} pixels over all frames`),
};

type Kept = Pick<UploadedFile, 'size_bytes' | 'sha256'>;

/** Replaces a stored image by one without metadata, under the same key. */
async function kept(
  blobs: Pick<Blobs, 'get' | 'put' | 'delete'>,
  { key, content_type, size_bytes, sha256 }: UploadedFile,
  refuse: Refuse<typeof IMAGE_ERRORS>,
): Promise<Kept> {
  if (!isImageType(content_type)) return { size_bytes, sha256 };
  try {
    return await encodeAgain(blobs, key, content_type);
  } catch (error) {
    // Nothing names it yet, and a repetition brings its own.
    if (error instanceof TooManyImages) await blobs.delete(key);
    if (!(error instanceof BadImage)) throw error;
    throw refuse(error.problem === 'damaged' ? 'DAMAGED' : 'TOO_MANY_PIXELS');
  }
}

/** Stores an image or audio file. Source: spec extra-facts §22. */
export const createUpload = command({
  name: 'createUpload',
  summary: 'Uploads an image or a sound for overlays, widgets and alerts',
  rest: post('/v1/uploads', { status: 201 }),
  per_minute: 60,
  graphql: null,
  takes: upload({
    file: 'file',
    most_bytes: MAX_BYTES,
    mostBytes: (account_id, db) => limitOf(db, account_id!, 'max_upload_size_bytes'),
    sniff: sniffUpload,
    content_types: [...UPLOAD_TYPES],
    inUse: async (keys, db) =>
      (
        await db.query<{ storage_key: string }>('select storage_key from uploads where storage_key = any($1)', [keys])
      ).map(({ storage_key }) => storage_key),
  }),
  guard: [permission('uploads:create')],
  input: z.object({ purpose: z.enum(UPLOAD_PURPOSES).nullish().describe('Default overlay') }),
  output: Upload,
  errors: { ...PLAN_LIMIT_REACHED, ...IMAGE_ERRORS },
  async run({ input, file, caller, context, act, refuse, newId }, { db, blobs, hashes }) {
    const { account_id } = caller;
    const upload_id = newId('upload');
    const { content_type, key: storage_key } = file;
    const { events } = await act(uploads, uploadsStream(account_id), {
      type: 'upload:create',
      ...{ upload_id, account_id, filename: cut(file.filename, MAX_FILENAME) || 'file', content_type, storage_key },
      ...(await kept(blobs, file, refuse)),
      ...{ purpose: input.purpose ?? 'overlay', created_by: actorOf(caller).user_id },
      max_bytes: await limitOf(db, account_id, 'max_storage_bytes'),
    });
    // Of a repetition the first, whose file is kept, whatever has become of it since.
    const created = events.find((event) => event.type === 'upload:created')!;
    if (created.storage_key !== storage_key) await blobs.delete(storage_key);
    const { filename, size_bytes, purpose, created_at } = created;
    return {
      ...{ id: upload_id, filename, content_type: created.content_type, size_bytes, purpose, created_at },
      storage_key: created.storage_key,
      download_url: await fileLink(hashes, { kind: 'upload', id: upload_id, account_id }, context.now),
    };
  },
});

/** Deletes an upload and its content; layers that name it draw nothing. */
export const deleteUpload = command({
  name: 'deleteUpload',
  summary: 'Deletes an upload and its content',
  rest: del('/v1/uploads/{id}'),
  guard: [permission('uploads:delete')],
  input: z.object({ id: z.uuid() }),
  output: z.object({ success: z.boolean() }).meta({ id: 'DeleteUploadResult' }),
  errors: { UPLOAD_NOT_FOUND: notFound('Upload not found') },
  async run({ input: { id: upload_id }, caller, act }) {
    await act(uploads, uploadsStream(caller.account_id), { type: 'upload:delete', upload_id });
    return { success: true };
  },
});
