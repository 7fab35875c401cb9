import { wavFile } from './audio-files';

/** A WAV file of silence: 8,000 samples a second of one byte. */
export const silence = (seconds: number): Buffer => wavFile(Buffer.alloc(8_000 * seconds, 128), 1);

/** Uploads a second of silence; returns the id of the sound. */
export async function uploadedSound(base_url: string, access_token: string, filename = 'silence.wav'): Promise<string> {
  const form = new FormData();
  form.append('file', new Blob([new Uint8Array(silence(1))]), filename);
  const headers = { authorization: `Bearer ${access_token}` };
  const answer = await fetch(`${base_url}/v1/sounds`, { method: 'POST', headers, body: form });
  const text = await answer.text();
  if (answer.status !== 201) throw new Error(`upload: ${answer.status} ${text}`);
  return (JSON.parse(text) as { data: { id: string } }).data.id;
}
