import { existsSync } from 'node:fs';
import { createS3Blobs } from '../../engines/blobs/s3';
import { startS3 } from './support/s3';

const PORT = 21_500 + (Number(process.env.JEST_WORKER_ID ?? 1) % 50);

test('a bucket that is missing is refused in one line, and made only where the address says so', async () => {
  const server = await startS3(PORT + 50);
  try {
    const asked = server.url('there');
    await (await createS3Blobs(asked)).close();
    await (await createS3Blobs(asked.replace('&create=true', ''))).close();
    const mistyped = server.url('theer').replace('&create=true', '');
    await expect(createS3Blobs(mistyped)).rejects.toThrow(
      /\/theer cannot be used: there is no such bucket; make it, or add create=true to the address$/,
    );
    expect(existsSync(server.folder('theer'))).toBe(false);
  } finally {
    await server.stop();
  }
});

test('a store that is not there is said in one line without the secret', async () => {
  const failure = await createS3Blobs('s3://key:topsecret@127.0.0.1:9/bucket?tls=false').catch((error: Error) => error);
  expect((failure as Error).message).toMatch(/^the blob store at http:\/\/127\.0\.0\.1:9\/bucket cannot be used/);
  expect((failure as Error).message).not.toContain('topsecret');
});

test('the account of the compose file owns its bucket alone, and takes a new password at the next start', async () => {
  const server = await startS3(PORT + 50);
  try {
    server.lumioAccount('first-password');
    const { url, otherBucket } = server.lumioAccount('second-password');
    const blobs = await createS3Blobs(url.replace('&create=true', ''));
    await blobs.put('a/key', Buffer.from('content'));
    expect(await blobs.head('a/key')).toMatchObject({ size_bytes: 7 });
    await blobs.close();
    await expect(createS3Blobs(otherBucket)).rejects.toThrow(/cannot be used: AccessDenied/);
    await expect(createS3Blobs(url.replace('second', 'first'))).rejects.toThrow(/cannot be used/);
  } finally {
    await server.stop();
  }
});
