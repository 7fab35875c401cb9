import { z } from 'zod';
import { download, get, notFound, offset, permission, query, signedLink } from '../../app/operation';
import type { Services } from '../../app/services';
import { UPLOAD_TYPES } from '../../domain/studio/uploads';
import { fileLink } from '../../services/studio/file-links';
import { Upload, uploadContentOf, uploadOf, uploadsOf, type UploadRow } from '../../views/studio/uploads';
import { LINK_MEMBERS, sentFile } from './files';

const UPLOAD_NOT_FOUND = { UPLOAD_NOT_FOUND: notFound('Upload not found') };

const shown = async (
  { hashes }: Pick<Services, 'hashes'>,
  account_id: string,
  now: number,
  row: UploadRow,
): Promise<z.output<typeof Upload>> => ({
  ...row,
  download_url: await fileLink(hashes, { kind: 'upload', id: row.id, account_id }, now),
});

/** Files of the account. Source: spec extra-facts §22. */
export const uploads = query({
  name: 'uploads',
  summary: 'Uploads of the account, newest first',
  rest: get('/v1/uploads'),
  pages: offset('UploadPage'),
  guard: [permission('uploads:read')],
  input: z.object({}),
  output: Upload,
  async run({ caller: { account_id }, context, page }, services) {
    const { items, total } = await uploadsOf(services.db, account_id, page);
    return { items: await Promise.all(items.map((row) => shown(services, account_id, context.now, row))), total };
  },
});

export const upload = query({
  name: 'upload',
  summary: 'One upload of the account, with a link to its content',
  rest: get('/v1/uploads/{id}'),
  guard: [permission('uploads:read')],
  input: z.object({ id: z.uuid() }),
  output: Upload,
  errors: UPLOAD_NOT_FOUND,
  async run({ input: { id }, caller: { account_id }, context, refuse }, services) {
    const row = await uploadOf(services.db, account_id, id);
    if (row === undefined) throw refuse('UPLOAD_NOT_FOUND');
    return shown(services, account_id, context.now, row);
  },
});

/** The content, by a signed link or with `uploads:read`. */
export const uploadContent = query({
  name: 'uploadContent',
  summary: 'The content of an upload',
  rest: get('/v1/uploads/{id}/content'),
  graphql: null,
  sends: download(...UPLOAD_TYPES),
  guard: [signedLink('upload'), permission('uploads:read')],
  input: z.object({ id: z.uuid(), ...LINK_MEMBERS }),
  output: z.object({}),
  errors: UPLOAD_NOT_FOUND,
  async run({ input: { id }, caller, refuse }, { db, blobs }) {
    const found = await uploadContentOf(db, id);
    if (found === undefined || found.account_id !== caller.account_id) throw refuse('UPLOAD_NOT_FOUND');
    return sentFile(blobs, found);
  },
});
