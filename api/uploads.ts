import multipart, { type MultipartFile } from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PassThrough } from 'node:stream';
import { v7 } from 'uuid';
import type { Services } from '../access/services';
import { ApiError } from '../kernel/errors';
import { EngineAway } from '../kernel/failures';
import type { Upload, UploadedFile } from '../kernel/transfers';

/** Of all text fields together. */
const MOST_FIELDS = 20;
const MOST_FIELD_BYTES = 64 * 1024;
/** What a type is told by. */
const HEAD_BYTES = 4100;

/** A multipart body that was read: its file lies in the blobs, and is swept in a day where neither is called. */
export interface Uploaded {
  file: UploadedFile;
  fields: Record<string, unknown>;
  /** The operation has it from now on. */
  keep(): Promise<void>;
  /** Nobody names it. */
  drop(): Promise<void>;
}

type Stores = Pick<Services, 'blobs' | 'db'>;

/** Lets the routes of this instance have multipart bodies. */
export async function acceptMultipart(app: FastifyInstance): Promise<void> {
  await app.register(multipart);
}

/**
 * Streams the file of a multipart body into the blobs, never more of it in memory than a chunk.
 * @throws ApiError VALIDATION_ERROR, BAD_REQUEST (413, 415); nothing is left in the blobs then
 */
export async function readUpload(request: FastifyRequest, takes: Upload, stores: Stores): Promise<Uploaded> {
  if (!request.isMultipart()) {
    throw new ApiError('BAD_REQUEST', 'Unsupported content type: send multipart/form-data', { status: 415 });
  }
  const limits = { files: 1, fields: MOST_FIELDS, fieldSize: MOST_FIELD_BYTES, fileSize: takes.most_bytes };
  const fields: Record<string, unknown> = {};
  let file: UploadedFile | undefined;
  try {
    for await (const part of request.parts({ limits })) {
      if (part.type === 'file') file = await store(part, takes, stores);
      else if (Object.hasOwn(fields, part.fieldname)) throw refused(`${part.fieldname}: is given twice`);
      else fields[part.fieldname] = part.value;
    }
  } catch (error) {
    if (file) await drop(stores, file.key);
    throw inOurWords(error, takes);
  }
  if (!file) throw refused(`${takes.file}: is missing`);
  const { key } = file;
  return { file, fields, keep: () => forget(stores, key), drop: () => drop(stores, key) };
}

/** Written down before the blob is: whatever ends the process, what it leaves is found. */
const begin = ({ db }: Stores, key: string) =>
  db.query('insert into uploads_under_way (key) values ($1)', [key], 'upload-begin');

/** @throws EngineAway where it was swept: the process stood still for a day */
async function renew({ db }: Stores, key: string): Promise<void> {
  const renewed = await db.query(
    'update uploads_under_way set begun_at = now() where key = $1 returning 1 as one',
    [key],
    'upload-renew',
  );
  if (renewed.length === 0) throw new EngineAway('blobs', new Error(`the upload ${key} took too long`));
}

async function forget({ db }: Stores, key: string): Promise<void> {
  await db.query('delete from uploads_under_way where key = $1', [key], 'upload-forget');
}

async function drop(stores: Stores, key: string): Promise<void> {
  await stores.blobs.delete(key);
  await forget(stores, key);
}

async function store(part: MultipartFile, takes: Upload, stores: Stores): Promise<UploadedFile> {
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
  await begin(stores, key);
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
    const { size_bytes, sha256 } = await stores.blobs.put(key, content, content_type);
    await filling;
    await renew(stores, key);
    return { key, filename: nameOf(part.filename), content_type, size_bytes, sha256 };
  } catch (error) {
    await drop(stores, key);
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
function inOurWords(error: unknown, takes: Upload): unknown {
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
