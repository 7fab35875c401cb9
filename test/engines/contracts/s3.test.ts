import { open } from 'node:fs/promises';
import { join } from 'node:path';
import { createS3Blobs } from '../../../engines/blobs/s3';
import { blobsContract } from '../../contracts/blobs';
import { type S3Server, startS3 } from '../support/s3';

const PORT = 21_600 + (Number(process.env.JEST_WORKER_ID ?? 1) % 50);
let s3: S3Server | undefined;

blobsContract('s3', async () => {
  s3 = await startS3(PORT);
  const url = s3.url('contract');
  const blobs = await createS3Blobs(url);
  return {
    blobs,
    again: () => createS3Blobs(url),
    async damage(key) {
      const file = await open(join(s3!.folder('contract'), key), 'r+');
      await file.write('b', 3);
      await file.close();
    },
    async close() {
      await blobs.close();
      await s3!.stop();
    },
  };
});
