import { z } from 'zod';
import { job } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { SOUND_EVENTS, sounds, soundsStream } from '../../domain/studio/sounds';

/** Deletes the audio of a deleted sound; idempotent. */
export const deleteSoundAudio = job({
  name: 'delete-sound-audio',
  payload: { blob_key: z.string() },
  after_unknown: 'repeat',
  run: ({ blob_key }, _attempt, { blobs }) => blobs.delete(blob_key),
});

/** The audio of deleted sounds goes, and all sounds of a dissolved account. */
export const soundAudio = reactor({
  name: 'sound-audio',
  from: 'beginning',
  events: [SOUND_EVENTS, ACCOUNT_EVENTS],
  on: {
    'sound:deleted': ({ sound_id, blob_key }, { enqueue }) =>
      enqueue(deleteSoundAudio, { key: sound_id, payload: { blob_key } }),
    'account:dissolved': async ({ account_id }, { act, now }) => {
      await act(sounds, soundsStream(account_id), { type: 'sound:delete_all', now });
    },
  },
});
