import { z } from 'zod';
import type { Blobs } from '../../engines/blobs/port';
import type { Download } from '../../kernel/operations/transfers';
import { partOf } from '../../services/studio/sound-files';

/** Members of a signed link to a file. */
export const LINK_MEMBERS = {
  expires: z.int().min(0).nullish().describe('Of a signed link: seconds since 1970'),
  signature: z.string().max(200).nullish().describe('Of a signed link, which needs no credential'),
};

interface StoredFile {
  content_type: string;
  size_bytes: number;
  blob_key: string;
  sha256: string;
}

/** Content of a file as it is sent: never as a document of this origin. */
export const sentFile = (blobs: Pick<Blobs, 'get' | 'part'>, file: StoredFile): Download => ({
  content_type: file.content_type,
  size_bytes: file.size_bytes,
  etag: file.sha256,
  cache_control: 'private, max-age=86400, immutable',
  content_security_policy: "sandbox; default-src 'none'",
  open: (range) => partOf(blobs, file, range),
});
