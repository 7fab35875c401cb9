import { readFileSync } from 'node:fs';
import { rename, writeFile } from 'node:fs/promises';
import { join } from 'node:path';

/** File with the address of the demo's overlay, which has a token that is shown once. */
export const OVERLAY_FILE = 'demo-overlay.json';

export interface OverlayCredentials {
  base_url: string;
  access_token: string;
}

interface Kept {
  id: string;
  /** Path of the page with its token. */
  path: string;
}

const LAYERS = [
  { type: 'chat', name: 'Chat', config: { x: 40, y: 560, width: 640, height: 480 } },
  { type: 'alerts', name: 'Alerts', config: { x: 560, y: 80, width: 800, height: 320, font_size: 40 } },
  { type: 'event_list', name: 'Events', config: { x: 1440, y: 560, width: 440, height: 480 } },
];

/**
 * Address of the demo's overlay with a chat, alerts and an event list; created unless the one of an earlier start is
 * there.
 */
export async function demoOverlay(credentials: OverlayCredentials, data_dir: string): Promise<string> {
  const file = join(data_dir, OVERLAY_FILE);
  const kept = keptIn(file);
  const is_there = kept !== null && (await call(credentials, 'GET', `/v1/overlays/${kept.id}`)).ok;
  const { path } = is_there ? kept : await created(credentials, file);
  return credentials.base_url + path;
}

function keptIn(file: string): Kept | null {
  try {
    return JSON.parse(readFileSync(file, 'utf8')) as Kept;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null;
    throw error;
  }
}

async function created(credentials: OverlayCredentials, file: string): Promise<Kept> {
  const made = await call(credentials, 'POST', '/v1/overlays', { name: 'Demo' });
  const { data } = (await successful(made)) as { data: { id: string; key: string; access_token: string } };
  const layers = { revision: 0, layers: LAYERS };
  await successful(await call(credentials, 'PUT', `/v1/overlays/${data.id}/layers`, layers));
  const kept = { id: data.id, path: `/overlay/${data.key}#token=${data.access_token}` };
  await writeFile(`${file}.tmp`, JSON.stringify(kept), { mode: 0o600 });
  await rename(`${file}.tmp`, file);
  return kept;
}

const call = ({ base_url, access_token }: OverlayCredentials, method: string, path: string, body?: object) =>
  fetch(base_url + path, {
    method,
    headers: {
      authorization: `Bearer ${access_token}`,
      ...(body !== undefined && { 'content-type': 'application/json' }),
    },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });

/** @throws Error for a refusal */
async function successful(answer: Response): Promise<unknown> {
  if (!answer.ok) throw new Error(`the demo's overlay was refused: ${await answer.text()}`);
  return answer.json();
}
