import { z } from 'zod';
import { job } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { UPLOAD_EVENTS, uploads, uploadsStream } from '../../domain/studio/uploads';

/** Deletes the content of a deleted upload; idempotent. */
export const deleteUploadContent = job({
  name: 'delete-upload-content',
  payload: { storage_key: z.string() },
  after_unknown: 'repeat',
  run: ({ storage_key }, _attempt, { blobs }) => blobs.delete(storage_key),
});

/** The content of deleted uploads goes, and all uploads of a dissolved account. */
export const uploadContent = reactor({
  name: 'upload-content',
  from: 'beginning',
  events: [UPLOAD_EVENTS, ACCOUNT_EVENTS],
  on: {
    'upload:deleted': ({ upload_id, storage_key }, { enqueue }) =>
      enqueue(deleteUploadContent, { key: upload_id, payload: { storage_key } }),
    'account:dissolved': async ({ account_id }, { act, now }) => {
      await act(uploads, uploadsStream(account_id), { type: 'upload:delete_all', now });
    },
  },
});
