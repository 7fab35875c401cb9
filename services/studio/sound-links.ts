import { timingSafeEqual } from 'node:crypto';
import type { SubjectKeys } from '../../privacy/subject-keys/port';

/** Links end at full hours, one to two hours later, so that caches meet equal ones. */
const HOUR_MS = 3_600_000;
const lifetimeOf = (now: number): number => (Math.floor(now / HOUR_MS) + 2) * HOUR_MS;

type Hashes = Pick<SubjectKeys, 'hashesOf'>;
interface Linked {
  sound_id: string;
  account_id: string;
}

async function signatureOf(hashes: Hashes, { sound_id, account_id }: Linked, expires: number): Promise<string> {
  // No subject of a person begins so: a platform has no slash.
  const text = `link/sound:${account_id}:${sound_id}:${expires}`;
  return (await hashes.hashesOf([text])).get(text)!;
}

/** Path of a sound's audio that needs no credential until it ends. Source: ruling c17. */
export async function soundLink(hashes: Hashes, sound: Linked, now: number): Promise<string> {
  const expires = lifetimeOf(now);
  const query = new URLSearchParams({
    expires: String(Math.floor(expires / 1000)),
    signature: await signatureOf(hashes, sound, Math.floor(expires / 1000)),
  });
  return `/v1/sounds/${sound.sound_id}/stream?${query.toString()}`;
}

/** Whether the link is one of ours, for this sound, and has not ended. */
export async function isSoundLink(
  hashes: Hashes,
  sound: Linked,
  { expires, signature }: { expires: number; signature: string },
  now: number,
): Promise<boolean> {
  const right = Buffer.from(await signatureOf(hashes, sound, expires));
  const given = Buffer.from(signature);
  return expires * 1000 > now && given.length === right.length && timingSafeEqual(given, right);
}
