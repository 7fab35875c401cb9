import { createHash } from 'node:crypto';
import { createReadStream, createWriteStream } from 'node:fs';
import { rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pipeline, type Readable } from 'node:stream';
import { pipeline as piped } from 'node:stream/promises';
import * as sdk from '@aws-sdk/client-s3';
import { Upload } from '@aws-sdk/lib-storage';
import { checkKey, DEFAULT_CONTENT_TYPE, Meter, Verifier } from './keys';
import type { BlobInfo, Blobs } from './port';
import { removeLeftovers, temporaryName } from './temporary';

// Node 20 is supported here on purpose; the SDK's own notice about it is read before its first client is made.
process.env.AWS_SDK_JS_NODE_VERSION_SUPPORT_WARNING_DISABLED ??= 'true';

const MIB = 1024 * 1024;
/** Up to here content goes in one request from memory. */
const IN_MEMORY_BYTES = 8 * MIB;
/** S3 takes at most 10,000 parts. */
const MOST_PARTS = 9_000;
/** How many objects of a listing are asked for their hash at a time. */
const HEADS_AT_ONCE = 16;

/** Files on the way to the bucket are named so. */
const UPLOAD = 'lumio-upload-';

export interface S3Target {
  endpoint: string;
  bucket: string;
  region: string;
  access_key_id: string;
  secret_access_key: string;
  /** A bucket that is missing is made. */
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
 * Blobs in an S3-compatible bucket, which is made only when the address asks for it: a mistyped name must not become an
 * empty store. The content's hash is kept as object metadata and must be known before the upload begins: what does not
 * fit into 8 MiB of memory passes through a temporary file, and from there in parts. S3 shows an object only when its
 * upload has been completed.
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
    // The checksums that only AWS understands are not asked for: ours is in the metadata and checked at each read.
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

  return {
    async put(key, content, content_type = DEFAULT_CONTENT_TYPE) {
      checkKey(key);
      const common = (sha256: string) => ({ Bucket, Key: key, ContentType: content_type, Metadata: { sha256 } });
      if (Buffer.isBuffer(content) && content.length <= IN_MEMORY_BYTES) return putBuffer(content);
      const { head: first, rest } = Buffer.isBuffer(content)
        ? { head: content, rest: undefined }
        : await beginning(content);
      if (!rest && first.length <= IN_MEMORY_BYTES) return putBuffer(first);

      const path = join(tmpdir(), temporaryName(UPLOAD));
      try {
        const meter = new Meter();
        await piped(chunks(first, rest), meter, createWriteStream(path, { flags: 'wx', mode: 0o600 }));
        const { size_bytes } = meter;
        const sha256 = meter.sha256();
        const partSize = Math.max(IN_MEMORY_BYTES, Math.ceil(size_bytes / MOST_PARTS));
        // A part that fails is sent again; when all tries are used up the whole upload is aborted and leaves nothing.
        await new Upload({
          client,
          params: { ...common(sha256), Body: createReadStream(path) },
          partSize,
          queueSize: 3,
        }).done();
        return { key, size_bytes, sha256, content_type };
      } finally {
        await rm(path, { force: true });
      }

      async function putBuffer(body: Buffer): Promise<BlobInfo> {
        const sha256 = createHash('sha256').update(body).digest('hex');
        await client.send(new sdk.PutObjectCommand({ ...common(sha256), Body: body, ContentLength: body.length }));
        return { key, size_bytes: body.length, sha256, content_type };
      }
    },
    async get(key) {
      checkKey(key);
      try {
        const found = await client.send(new sdk.GetObjectCommand({ Bucket, Key: key }));
        const verifier = new Verifier(key, infoOf(key, found).sha256);
        // Errors of both ends reach the reader through the verifier.
        pipeline(found.Body as Readable, verifier, () => undefined);
        return verifier;
      } catch (error) {
        if (isMissing(error)) return undefined;
        throw error;
      }
    },
    head,
    async *list(prefix) {
      const pages = sdk.paginateListObjectsV2({ client }, { Bucket, Prefix: prefix });
      for await (const page of pages) {
        const keys = (page.Contents ?? []).map(({ Key }) => Key!);
        for (let at = 0; at < keys.length; at += HEADS_AT_ONCE) {
          for (const info of await Promise.all(keys.slice(at, at + HEADS_AT_ONCE).map(head))) if (info) yield info;
        }
      }
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
        // Another node was faster.
        if (!/BucketAlready/.test((failure as Error).name)) throw failure;
      });
    }
  }
}

/** The first bytes of a stream, and what follows them when that is more than fits into memory. */
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
 * An object without our metadata was put there by someone else; its hash is not known, and reading it fails as damaged.
 */
function infoOf(
  key: string,
  found: Pick<sdk.HeadObjectCommandOutput, 'ContentLength' | 'Metadata' | 'ContentType'>,
): BlobInfo {
  return {
    key,
    size_bytes: found.ContentLength ?? 0,
    sha256: found.Metadata?.sha256 ?? '',
    content_type: found.ContentType ?? DEFAULT_CONTENT_TYPE,
  };
}

function isMissing(error: unknown): boolean {
  const { name, $metadata } = error as { name?: string; $metadata?: { httpStatusCode?: number } };
  return name === 'NoSuchKey' || name === 'NotFound' || name === 'NoSuchBucket' || $metadata?.httpStatusCode === 404;
}

const describe = (error: unknown) =>
  error instanceof Error ? `${error.name === 'Error' ? '' : `${error.name}: `}${error.message}` : String(error);
