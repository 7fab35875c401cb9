import multipart, { type MultipartFile } from '@fastify/multipart';
import type { FastifyInstance, FastifyRequest } from 'fastify';
import { PassThrough } from 'node:stream';
import { v7 } from 'uuid';
import type { Services } from '../../app/services';
import { ApiError } from '../../kernel/errors';
import { EngineUnavailable } from '../../kernel/failures';
import type { Upload, UploadedFile } from '../../kernel/operations/transfers';
import { jsonRefusals } from '../http/requests/json-rules';

/** Bounds of the text fields. */
const MAX_FIELDS = 20;
const MAX_FIELD_BYTES = 64 * 1024;
/** Bytes from which the content type is detected. */
const HEAD_BYTES = 4100;

/** A multipart body whose file is in the blob store, and is swept after a day unless `keep` or `drop` is called. */
export interface Uploaded {
  file: UploadedFile;
  fields: Record<string, unknown>;
  /** Leaves the file to the operation. */
  keep(): Promise<void>;
  /** Deletes the file. */
  drop(): Promise<void>;
}

type Stores = Pick<Services, 'blobs' | 'db'>;

/** Makes the routes of this instance accept multipart bodies. */
export async function acceptMultipart(app: FastifyInstance): Promise<void> {
  await app.register(multipart);
}

/**
 * Streams the file of a multipart body into the blob store, with at most a chunk of it in memory.
 * @throws ApiError VALIDATION_ERROR, BAD_REQUEST (413, 415); the blob store then keeps no part of the file
 */
export async function readUpload(
  request: FastifyRequest,
  declared: Upload,
  stores: Stores,
  account_id: string | null = null,
): Promise<Uploaded> {
  if (!request.isMultipart()) {
    throw new ApiError('BAD_REQUEST', 'Unsupported content type: send multipart/form-data', { status: 415 });
  }
  const own = (await declared.mostBytes?.(account_id, stores.db)) ?? declared.most_bytes;
  const takes = { ...declared, most_bytes: Math.min(own, declared.most_bytes) };
  const limits = { files: 1, fields: MAX_FIELDS, fieldSize: MAX_FIELD_BYTES, fileSize: takes.most_bytes };
  const fields: Record<string, unknown> = {};
  let file: UploadedFile | undefined;
  const { raw } = request;
  const { socket } = raw;
  // Node ends the body of a request that was answered already neither at its end nor at that of the connection.
  const abort = () => void raw.destroy(new Error('the connection is closed'));
  socket.once('close', abort);
  const ensureArriving = () => {
    if (raw.destroyed && !raw.complete) throw new ApiError('BAD_REQUEST', 'The body broke off');
  };
  try {
    ensureArriving();
    for await (const part of request.parts({ limits })) {
      if (part.type === 'file') file = await store(part, takes, stores);
      else if (Object.hasOwn(fields, part.fieldname)) throw refused(`${part.fieldname}: is given twice`);
      else fields[part.fieldname] = checkedField(part.value);
    }
  } catch (error) {
    if (file) await drop(stores, file.key);
    ensureArriving();
    throw inOurWords(error, takes);
  } finally {
    socket.off('close', abort);
  }
  if (!file) throw refused(`${takes.file}: is missing`);
  const { key } = file;
  return { file, fields, keep: () => forget(stores, key), drop: () => drop(stores, key) };
}

/** Records the upload before the blob is written, so that the leftovers of a killed process are found. */
const begin = ({ db }: Stores, key: string) =>
  db.query('insert into uploads_under_way (key) values ($1)', [key], 'upload-begin');

/** @throws EngineUnavailable when the upload was swept, after a day without progress */
async function renew({ db }: Stores, key: string): Promise<void> {
  const renewed = await db.query(
    'update uploads_under_way set begun_at = now() where key = $1 returning 1 as one',
    [key],
    'upload-renew',
  );
  if (renewed.length === 0) throw new EngineUnavailable('blobs', new Error(`the upload ${key} took too long`));
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
  // A short file may end before the store reads it; `filling` has the error.
  content.on('error', () => undefined);
  const filling = (async () => {
    for (const chunk of head) if (!content.write(chunk)) await drained(content);
    while (!done) {
      const next = await source.next();
      done = next.done === true;
      if (!done && !content.write(next.value)) await drained(content);
    }
    // Cut at the limit: the stored bytes are not the whole file.
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

/** A part may name a charset of its own, or JSON, so that its text has what a JSON body may not have. */
function checkedField(value: unknown): unknown {
  if (typeof value !== 'string') return value;
  if (value.includes('\0')) throw jsonRefusals.nul();
  if (!value.isWellFormed()) throw jsonRefusals.lone_surrogate();
  return value;
}

const refused = (message: string) => new ApiError('VALIDATION_ERROR', message);
const tooLarge = ({ file, most_bytes, too_large_status: status = 413 }: Upload) =>
  new ApiError('BAD_REQUEST', `${file}: is larger than ${most_bytes} bytes`, { status });

/** Converts errors of the multipart reader. */
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

/** Characters that turn the direction of text, so that a name looks like another. */
const BIDI = /[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]/g;

/** Last part of the file name, because some clients send a path. */
const nameOf = (sent_name: string | undefined): string =>
  (sent_name ?? '')
    .split(/[/\\]/)
    .pop()!
    .toWellFormed()
    .replace(/\p{Cc}/gu, '')
    .replace(BIDI, '')
    .trim();
