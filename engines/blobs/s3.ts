import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline, Readable } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import * as sdk from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { checkKey, DEFAULT_CONTENT_TYPE, Meter, Verifier } from './keys';
import { BlobDamaged, type BlobInfo, type Blobs } from './port';
import { removeLeftovers, temporaryName } from '../../lib/files/temporary';

// Node 20 is supported on purpose; the SDK reads this switch of its warning before it makes its first client.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

const MIB = 1024 * 1024;
/** Largest content that is sent in one request from memory. */
const IN_MEMORY_BYTES = 8 * MIB;
/** Most parts of an upload; S3 allows 10,000. */
const MAX_PARTS = 9_000;
/** Length of a part of content with an unknown length, which may then have up to 288 GB. */
const PART_BYTES = 32 * MIB;
const PARTS_AT_ONCE = 3;
/** Concurrent requests for the hashes of a listing. */
const HEADS_AT_ONCE = 16;

/** Name prefix of temporary files of uploads. */
const UPLOAD = 'lumio-upload-';

export interface S3Target {
  endpoint: string;
  bucket: string;
  region: string;
  access_key_id: string;
  secret_access_key: string;
  /** Creates a missing bucket. */
  create: boolean;
}

/**
 * Reads `s3://KEY:SECRET@host:port/bucket?region=…&tls=false&create=true` (key and secret URL-encoded).
 * @throws Error that never shows the secret
 */
export function parseS3Url(text: string): S3Target {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new Error('the S3 address is not s3://KEY:SECRET@host:port/bucket?region=…&tls=false');
  }
  const bucket = url.pathname.replace(/^\/|\/$/g, '');
  if (url.protocol !== 's3:' || !url.hostname || !url.username || !url.password) {
    throw new Error('the S3 address needs key, secret and host: s3://KEY:SECRET@host:port/bucket');
  }
  if (!/^[a-z0-9][a-z0-9.-]{1,61}[a-z0-9]$/.test(bucket)) {
    throw new Error(`the S3 address names no valid bucket (${bucket || 'none'}): 3 to 63 of a-z, 0-9, . and -`);
  }
  const tls = url.searchParams.get('tls') !== 'false';
  return {
    endpoint: `${tls ? 'https' : 'http'}://${url.host}`,
    bucket,
    region: url.searchParams.get('region') ?? 'us-east-1',
    access_key_id: decodeURIComponent(url.username),
    secret_access_key: decodeURIComponent(url.password),
    create: url.searchParams.get('create') === 'true',
  };
}

/**
 * Blobs in an S3-compatible bucket, which is created only with `create=true` in the address, because a mistyped name
 * must not become an empty store. The content's hash is stored as object metadata and must be known before the upload
 * begins: content above 8 MiB is written to a temporary file first, and uploaded from there in parts. When the caller
 * knows or stores the hash, parts are sent from memory. S3 shows an object only after its upload has completed.
 */
export async function createS3Blobs(address: string): Promise<Blobs> {
  const target = parseS3Url(address);
  await removeLeftovers(tmpdir(), UPLOAD);
  const client = new sdk.S3Client({
    endpoint: target.endpoint,
    region: target.region,
    forcePathStyle: true,
    credentials: { accessKeyId: target.access_key_id, secretAccessKey: target.secret_access_key },
    maxAttempts: 5,
    // Checksums that only AWS supports are off: our own is in the metadata and checked at each read.
    requestChecksumCalculation: 'WHEN_REQUIRED',
    responseChecksumValidation: 'WHEN_REQUIRED',
  });
  try {
    await ensureBucket(client, target);
  } catch (error) {
    client.destroy();
    throw new Error(`the blob store at ${target.endpoint}/${target.bucket} cannot be used: ${describe(error)}`, {
      cause: error,
    });
  }
  const Bucket = target.bucket;

  async function head(key: string): Promise<BlobInfo | undefined> {
    checkKey(key);
    try {
      return infoOf(key, await client.send(new sdk.HeadObjectCommand({ Bucket, Key: key })));
    } catch (error) {
      if (isMissing(error)) return undefined;
      throw error;
    }
  }

  async function* pagesOfKeys(prefix: string): AsyncGenerator<string[]> {
    for await (const page of sdk.paginateListObjectsV2({ client }, { Bucket, Prefix: prefix }))
      yield (page.Contents ?? []).map(({ Key }) => Key!);
  }

  return {
    async put(key, content, content_type = DEFAULT_CONTENT_TYPE, options = {}) {
      checkKey(key);
      const common = (sha256: string) => ({ Bucket, Key: key, ContentType: content_type, Metadata: { sha256 } });
      const { sha256: wanted, about_bytes = 0 } = options;
      if (Buffer.isBuffer(content) && content.length <= IN_MEMORY_BYTES) return putBuffer(content);
      const { head: first, rest } = Buffer.isBuffer(content)
        ? { head: content, rest: undefined }
        : await beginning(content);
      if (!rest && first.length <= IN_MEMORY_BYTES) return putBuffer(first);

      if (wanted !== undefined) return putParts(first, rest, wanted ?? KEPT_BY_CALLER);
      const path = join(tmpdir(), temporaryName(UPLOAD));
      try {
        const meter = new Meter();
        await piped(chunks(first, rest), meter, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
        const { size_bytes } = meter;
        const sha256 = meter.sha256();
        const partSize = Math.max(IN_MEMORY_BYTES, Math.ceil(size_bytes / MAX_PARTS));
        // A failed part is sent again; after the last try the whole upload is aborted and leaves no object.
        await new Upload({
          client,
          params: { ...common(sha256), Body: createReadStream(path) },
          partSize,
          queueSize: PARTS_AT_ONCE,
        }).done();
        return { key, size_bytes, sha256, content_type };
      } finally {
        await rm(path, { force: true });
      }

      async function putParts(begun: Buffer, others: AsyncIterator<Buffer> | undefined, sha256: string) {
        const meter = sha256 === KEPT_BY_CALLER ? new Meter() : new Verifier(key, sha256);
        // A failure of the content aborts the upload, which then leaves no object.
        const read = piped(chunks(begun, others), meter);
        const partSize = Math.max(about_bytes > 0 ? IN_MEMORY_BYTES : PART_BYTES, Math.ceil(about_bytes / MAX_PARTS));
        const params = { ...common(sha256), Body: meter };
        const upload = new Upload({ client, params, partSize, queueSize: PARTS_AT_ONCE }).done();
        upload.catch((error: Error) => meter.destroy(error));
        await Promise.all([upload, read]);
        const found = sha256 === KEPT_BY_CALLER ? meter.sha256() : sha256;
        return { key, size_bytes: meter.size_bytes, sha256: found, content_type };
      }

      async function putBuffer(body: Buffer): Promise<BlobInfo> {
        const sha256 = createHash('sha256').update(body).digest('hex');
        if (wanted && wanted !== sha256) throw new BlobDamaged(key);
        await client.send(new sdk.PutObjectCommand({ ...common(sha256), Body: body, ContentLength: body.length }));
        return { key, size_bytes: body.length, sha256, content_type };
      }
    },
    async get(key) {
      checkKey(key);
      try {
        const found = await client.send(new sdk.GetObjectCommand({ Bucket, Key: key }));
        const verifier = isUnhashed(found) ? new Meter() : new Verifier(key, infoOf(key, found).sha256);
        // Errors of both ends reach the reader through the verifier.
        pipeline(found.Body as Readable, verifier, () => undefined);
        return verifier;
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    async part(key, { start, end }) {
      checkKey(key);
      try {
        const range = { Bucket, Key: key, Range: `bytes=${start}-${end}` };
        return (await client.send(new sdk.GetObjectCommand(range))).Body as Readable;
      } catch (error) {
        if (isMissing(error)) return undefined;
        // The blob ends before the part.
        if ((error as { name?: string }).name === 'InvalidRange') return Readable.from([]);
        throw error;
      }
    },
    head,
    async *list(prefix) {
      for await (const keys of pagesOfKeys(prefix)) {
        for (let at = 0; at < keys.length; at += HEADS_AT_ONCE) {
          for (const info of await Promise.all(keys.slice(at, at + HEADS_AT_ONCE).map(head))) if (info) yield info;
        }
      }
    },
    async *keys(prefix) {
      for await (const keys of pagesOfKeys(prefix)) yield* keys;
    },
    async delete(key) {
      checkKey(key);
      await client.send(new sdk.DeleteObjectCommand({ Bucket, Key: key }));
    },
    async close() {
      client.destroy();
    },
  };

  async function ensureBucket(s3: sdk.S3Client, { bucket: name, create }: S3Target): Promise<void> {
    try {
      await s3.send(new sdk.HeadBucketCommand({ Bucket: name }));
    } catch (error) {
      if (!isMissing(error)) throw error;
      if (!create) throw new Error('there is no such bucket; make it, or add create=true to the address');
      await s3.send(new sdk.CreateBucketCommand({ Bucket: name })).catch((failure: unknown) => {
        // Another node has created the bucket meanwhile.
        if (!/BucketAlready/.test((failure as Error).name)) throw failure;
      });
    }
  }
}

/** The first bytes of a stream, and the rest when the content exceeds {@link IN_MEMORY_BYTES}. */
async function beginning(content: Readable): Promise<{ head: Buffer; rest: AsyncIterator<Buffer> | undefined }> {
  const held: Buffer[] = [];
  let bytes = 0;
  const rest = content[Symbol.asyncIterator]() as AsyncIterator<Buffer>;
  for (;;) {
    const { value, done } = await rest.next();
    if (done) return { head: Buffer.concat(held), rest: undefined };
    held.push(Buffer.from(value));
    bytes += value.length;
    if (bytes > IN_MEMORY_BYTES) return { head: Buffer.concat(held), rest };
  }
}

async function* chunks(head: Buffer, rest: AsyncIterator<Buffer> | undefined): AsyncGenerator<Buffer> {
  yield head;
  if (rest) yield* { [Symbol.asyncIterator]: () => rest };
}

/**
 * Facts of an object. An object without our metadata is foreign: its hash is unknown, and reading it fails as damaged.
 */
function infoOf(
  key: string,
  found: Pick<sdk.HeadObjectCommandOutput, 'ContentLength' | 'Metadata' | 'ContentType'>,
): BlobInfo {
  return {
    key,
    size_bytes: found.ContentLength ?? 0,
    sha256: isUnhashed(found) ? '' : (found.Metadata?.sha256 ?? ''),
    content_type: found.ContentType ?? DEFAULT_CONTENT_TYPE,
  };
}

/** Value in place of a hash that the caller stores; an object without any value is foreign. */
const KEPT_BY_CALLER = 'kept-by-caller';
const isUnhashed = ({ Metadata }: Pick<sdk.HeadObjectCommandOutput, 'Metadata'>): boolean =>
  Metadata?.sha256 === KEPT_BY_CALLER;

function isMissing(error: unknown): boolean {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  return name === 'NoSuchKey' || name === 'NotFound' || name === 'NoSuchBucket' || $metadata?.httpStatusCode === 404;
}

const describe = (error: unknown) =>
  error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : String(error);
