import sharp from 'sharp';

/** A picture of one colour. */
export const picture = (width = 8, height = 8) =>
  sharp({ create: { width, height, channels: 4, background: '#ff0000' } });

/** Answer of an upload of this file. */
export async function uploadFile(
  base_url: string,
  access_token: string,
  bytes: Buffer,
  { filename = 'picture.png', fields = {}, key = '' }: { filename?: string; fields?: object; key?: string } = {},
): Promise<{ status: number; body: any }> {
  const form = new FormData();
  for (const [name, value] of Object.entries(fields)) form.append(name, String(value));
  form.append('file', new Blob([new Uint8Array(bytes)], { type: 'text/html' }), filename);
  const headers = { authorization: `Bearer ${access_token}`, ...(key === '' ? {} : { 'idempotency-key': key }) };
  const answer = await fetch(`${base_url}/v1/uploads`, { method: 'POST', headers, body: form });
  return { status: answer.status, body: await answer.json() };
}

/** Uploads a small picture; returns the id of the upload. */
export async function uploadedImage(base_url: string, access_token: string, filename = 'red.png'): Promise<string> {
  const { status, body } = await uploadFile(base_url, access_token, await picture().png().toBuffer(), { filename });
  if (status !== 201) throw new Error(`upload: ${status} ${JSON.stringify(body)}`);
  return body.data.id;
}
