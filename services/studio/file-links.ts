import { timingSafeEqual } from 'node:crypto';
import type { LinkedKind } from '../../access/authorization/guards';
import type { SubjectKeys } from '../../privacy/subject-keys/port';

/** Links end at full hours, one to two hours later, so that caches meet equal ones. */
const HOUR_MS = 3_600_000;
const lifetimeOf = (now: number): number => (Math.floor(now / HOUR_MS) + 2) * HOUR_MS;

type Hashes = Pick<SubjectKeys, 'hashesOf'>;

/** Files of accounts that links open, with the path of their content. */
const PATHS: Readonly<Record<LinkedKind, (id: string) => string>> = {
  sound: (id: string) => `/v1/sounds/${id}/stream`,
  upload: (id: string) => `/v1/uploads/${id}/content`,
};
export interface LinkedFile {
  kind: LinkedKind;
  id: string;
  account_id: string;
}

/** The account, and a keyed hash of the account, the file and the end of the link. */
async function signatureOf(hashes: Hashes, { kind, id, account_id }: LinkedFile, expires: number): Promise<string> {
  // No subject of a person begins so: a platform has no slash.
  const text = `link/${kind}:${account_id}:${id}:${expires}`;
  return `${account_id}.${(await hashes.hashesOf([text])).get(text)!}`;
}

/** Path of a file's content that needs no credential until it ends. Source: ruling c17. */
export async function fileLink(hashes: Hashes, file: LinkedFile, now: number): Promise<string> {
  const expires = Math.floor(lifetimeOf(now) / 1000);
  const query = new URLSearchParams({
    expires: String(expires),
    signature: await signatureOf(hashes, file, expires),
  });
  return `${PATHS[file.kind](file.id)}?${query.toString()}`;
}

const EXPIRES = /^\d{1,12}$/;

/** The account whose file the link opens; null of a link that is not ours, is of another file, or has ended. */
export async function accountOfLink(
  hashes: Hashes,
  { kind, id, expires, signature }: { kind: LinkedKind; id: unknown; expires: unknown; signature: string },
  now: number,
): Promise<string | null> {
  const [account_id = ''] = signature.split('.');
  if (typeof id !== 'string' || !EXPIRES.test(String(expires)) || Number(expires) * 1000 <= now) return null;
  const right = Buffer.from(await signatureOf(hashes, { kind, id, account_id }, Number(expires)));
  const given = Buffer.from(signature);
  return given.length === right.length && timingSafeEqual(given, right) ? account_id : null;
}
