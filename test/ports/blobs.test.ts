import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { createFileBlobs } from '../../engines/blobs/files';
import { parseS3Url } from '../../engines/blobs/s3';
import { removeLeftovers } from '../../lib/files/temporary';
import { blobsContract } from '../contracts/blobs';

const folder = () => mkdtempSync(join(tmpdir(), 'lumio-blobs-'));

blobsContract('files', async () => {
  const root = folder();
  return {
    blobs: await createFileBlobs(root),
    again: () => createFileBlobs(root),
    async damage(key) {
      const file = await open(join(root, `${key}~blob`), 'r+');
      await file.write('b', 3);
      await file.close();
    },
    close: async () => rmSync(root, { recursive: true, force: true }),
  };
});

test('what a killed process left half-written is never listed and goes when it is a day old', async () => {
  const root = folder();
  const blobs = await createFileBlobs(root);
  const old = `${Date.now() - 90_000_000}-dead`;
  writeFileSync(join(root, '~tmp', old), 'half');
  writeFileSync(join(root, '~tmp', `${Date.now()}-alive`), 'half');
  await blobs.put('a', Buffer.from('whole'));
  const again = await createFileBlobs(root);
  expect(readdirSync(join(root, '~tmp'))).toHaveLength(1);
  const keys: string[] = [];
  for await (const { key } of again.list('')) keys.push(key);
  expect(keys).toEqual(['a']);
  rmSync(root, { recursive: true });
});

test('what a killed process left of an upload to S3 goes when it is a day old; what is not a file of ours stays', async () => {
  const root = folder();
  const [old, fresh] = [Date.now() - 90_000_000, Date.now()];
  const ours = (at: number) => `lumio-upload-${at}-0123456789abcdef`;
  const kept = [
    ours(fresh),
    'lumio-upload-0123456789abcdef',
    `${old}-0123456789abcdef`,
    `lumio-upload-${old - 1}-folder`,
  ];
  for (const name of [ours(old), ...kept.slice(0, 3)]) writeFileSync(join(root, name), 'half');
  mkdirSync(join(root, kept[3]!));
  await removeLeftovers(root, 'lumio-upload-');
  expect(readdirSync(root).sort()).toEqual([...kept].sort());
  rmSync(root, { recursive: true });
});

test('S3 addresses: parts are read, mistakes are told without the secret', () => {
  expect(parseS3Url('s3://K%2FY:S%2B%2F@s3.example:9000/lumio?region=eu-1&tls=false')).toEqual({
    endpoint: 'http://s3.example:9000',
    bucket: 'lumio',
    region: 'eu-1',
    access_key_id: 'K/Y',
    secret_access_key: 'S+/',
    create: false,
  });
  expect(parseS3Url('s3://k:s@host/bucket?create=true').create).toBe(true);
  expect(parseS3Url('s3://k:s@host/bucket').endpoint).toBe('https://host');
  for (const bad of [
    's3://k:topsecret@host/',
    's3://host/bucket',
    's3://k:topsecret@host/B',
    's3://k:topsecret@:1/x y',
    'nonsense',
  ]) {
    let message = '';
    try {
      parseS3Url(bad);
    } catch (error) {
      message = (error as Error).message;
    }
    expect(message).toMatch(/^the S3 address/);
    expect(message).not.toContain('topsecret');
  }
});
