import { createFileBlobs } from './files';
import type { Blobs } from './port';

/** Opens a blob store by its address: `s3://…`, else a folder. The S3 client is loaded only when it is used. */
export async function openBlobs(address: string): Promise<Blobs> {
  if (!address.startsWith('s3:')) return createFileBlobs(address);
  const { createS3Blobs } = await import('./s3.js');
  return createS3Blobs(address);
}
