import { z } from 'zod';
import { job } from '../../app/job';
import { reactor } from '../../app/reactor';
import { ACCOUNT_EVENTS } from '../../domain/accounts/accounts';
import { peaksOf } from '../../services/studio/audio-pool';
import { SOUND_EVENTS, sounds, soundsStream } from '../../domain/studio/sounds';

/** Deletes the audio of a deleted sound; idempotent. */
export const deleteSoundAudio = job({
  name: 'delete-sound-audio',
  payload: { blob_key: z.string() },
  after_unknown: 'repeat',
  run: ({ blob_key }, _attempt, { blobs }) => blobs.delete(blob_key),
});

/** Finds the peaks of a sound; idempotent. */
export const drawSoundWaveform = job({
  name: 'draw-sound-waveform',
  payload: { account_id: z.uuid(), sound_id: z.uuid(), blob_key: z.string(), content_type: z.string() },
  after_unknown: 'repeat',
  async run({ account_id, sound_id, blob_key, content_type }, _attempt, { act, blobs }) {
    const peaks = await peaksOf(blobs, blob_key, content_type);
    if (peaks === null) return;
    const waveform = JSON.stringify(peaks);
    await act(sounds, soundsStream(account_id), { type: 'sound:draw', sound_id, waveform });
  },
});

/** The audio of deleted sounds goes, and all sounds of a dissolved account. */
export const soundAudio = reactor({
  name: 'sound-audio',
  from: 'beginning',
  events: [SOUND_EVENTS, ACCOUNT_EVENTS],
  on: {
    'sound:created': ({ account_id, sound_id, blob_key, content_type }, { enqueue }) =>
      enqueue(drawSoundWaveform, {
        key: `${sound_id}:waveform`,
        payload: { account_id, sound_id, blob_key, content_type },
      }),
    'sound:deleted': ({ sound_id, blob_key }, { enqueue }) =>
      enqueue(deleteSoundAudio, { key: sound_id, payload: { blob_key } }),
    'account:dissolved': async ({ account_id }, { act, now }) => {
      await act(sounds, soundsStream(account_id), { type: 'sound:delete_all', now });
    },
  },
});
