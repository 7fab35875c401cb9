import multipart, { type MultipartFile } from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PassThrough } from 'node:stream';
import { v7 } from 'uuid';
import type { Services } from '../access/services';
import { ApiError } from '../kernel/errors';
import type { Upload, UploadedFile } from '../kernel/transfers';

/** Of all text fields together. */
const MOST_FIELDS = 20;
const MOST_FIELD_BYTES = 64 * 1024;
/** What a type is told by. */
const HEAD_BYTES = 4100;

/** A multipart body that was read: its file lies in the blobs. */
export interface Uploaded {
  file: UploadedFile;
  fields: Record<string, unknown>;
}

/** Lets the routes of this instance have multipart bodies. */
export async function acceptMultipart(app: FastifyInstance): Promise<void> {
  await app.register(multipart);
}

/**
 * Streams the file of a multipart body into the blobs, never more of it in memory than a chunk.
 * @throws ApiError VALIDATION_ERROR, BAD_REQUEST (413, 415); nothing is left in the blobs then
 */
export async function readUpload(
  request: FastifyRequest,
  takes: Upload,
  { blobs }: Pick<Services, 'blobs'>,
): Promise<Uploaded> {
  if (!request.isMultipart()) {
    throw new ApiError('BAD_REQUEST', 'Unsupported content type: send multipart/form-data', { status: 415 });
  }
  const limits = { files: 1, fields: MOST_FIELDS, fieldSize: MOST_FIELD_BYTES, fileSize: takes.most_bytes };
  const fields: Record<string, unknown> = {};
  let file: UploadedFile | undefined;
  try {
    for await (const part of request.parts({ limits })) {
      if (part.type === 'file') file = await store(part, takes, blobs);
      else if (Object.hasOwn(fields, part.fieldname)) throw refused(`${part.fieldname}: is given twice`);
      else fields[part.fieldname] = part.value;
    }
  } catch (error) {
    if (file) await blobs.delete(file.key);
    throw told(error, takes);
  }
  if (!file) throw refused(`${takes.file}: is missing`);
  return { file, fields };
}

async function store(part: MultipartFile, takes: Upload, blobs: Services['blobs']): Promise<UploadedFile> {
  if (part.fieldname !== takes.file) throw refused(`${part.fieldname}: is not a member of this request`);
  const key = `uploads/${v7()}`;
  const source = part.file[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  const head: Buffer[] = [];
  let bytes = 0;
  let done = false;
  while (bytes < HEAD_BYTES && !done) {
    const next = await source.next();
    done = next.done === true;
    if (!done) {
      head.push(next.value);
      bytes += next.value.length;
    }
  }
  const content_type = takes.sniff(Buffer.concat(head).subarray(0, HEAD_BYTES));
  if (content_type === null) {
    throw refused(`${takes.file}: is none of ${takes.content_types.join(', ')}`);
  }
  const content = new PassThrough();
  const filling = (async () => {
    for (const chunk of head) if (!content.write(chunk)) await drained(content);
    while (!done) {
      const next = await source.next();
      done = next.done === true;
      if (!done && !content.write(next.value)) await drained(content);
    }
    // Cut at the limit: what was stored until then is not the file.
    if (part.file.truncated) throw tooLarge(takes);
    content.end();
  })();
  filling.catch((error: Error) => content.destroy(error));
  try {
    const { size_bytes, sha256 } = await blobs.put(key, content, content_type);
    await filling;
    return { key, filename: nameOf(part.filename), content_type, size_bytes, sha256 };
  } catch (error) {
    await blobs.delete(key);
    throw error;
  }
}

const drained = (stream: PassThrough): Promise<void> =>
  new Promise((resume, fail) => {
    if (stream.destroyed) return fail(new Error('the blob was not taken'));
    stream.once('drain', resume).once('close', () => fail(new Error('the blob was not taken')));
  });

const refused = (message: string) => new ApiError('VALIDATION_ERROR', message);
const tooLarge = ({ file, most_bytes }: Upload) =>
  new ApiError('BAD_REQUEST', `${file}: is larger than ${most_bytes} bytes`, { status: 413 });

/** The reader's own errors, in our words. */
function told(error: unknown, takes: Upload): unknown {
  if (error instanceof ApiError) return error;
  const { code, statusCode } = error as { code?: string; statusCode?: number };
  if (code === 'FST_REQ_FILE_TOO_LARGE') return tooLarge(takes);
  if (code === 'FST_FILES_LIMIT') return refused('More than one file');
  if (code === 'FST_FIELDS_LIMIT' || code === 'FST_PARTS_LIMIT') return refused('Too many fields');
  if (statusCode !== undefined && statusCode < 500) return refused('The multipart body is malformed');
  if (error instanceof Error && /multipart|Unexpected end|boundary/i.test(error.message)) {
    return new ApiError('BAD_REQUEST', 'The multipart body is malformed');
  }
  return error;
}

/** Clients send paths; the last part is the name. */
const nameOf = (given: string | undefined): string =>
  (given ?? '')
    .split(/[/\\]/)
    .pop()!
    .replace(/\p{Cc}/gu, '');
