/** A WAV file of silence: 8,000 samples a second of one byte. */
export function silence(seconds: number): Buffer {
  const data = Buffer.alloc(8_000 * seconds, 128);
  const head = Buffer.alloc(44);
  head.write('RIFF', 0);
  head.writeUInt32LE(36 + data.length, 4);
  head.write('WAVEfmt ', 8);
  head.writeUInt32LE(16, 16);
  head.writeUInt16LE(1, 20);
  head.writeUInt16LE(1, 22);
  head.writeUInt32LE(8_000, 24);
  head.writeUInt32LE(8_000, 28);
  head.writeUInt16LE(1, 32);
  head.writeUInt16LE(8, 34);
  head.write('data', 36);
  head.writeUInt32LE(data.length, 40);
  return Buffer.concat([head, data]);
}

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
