import { createHash } from 'node:crypto';
import type { AuditEntry } from '../../domain/audit/audit-log';
import type { Json } from '../../lib/json/json';

/** Previous hash of the first entry of a chain. */
export const NO_HASH = '0'.repeat(64);

const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

/**
 * Digests of the encrypted form of each personal value; they replace the values in the hash. The encrypted form begins
 * with a nonce, which is the salt, and stays in the event, so that a rebuild repeats the hash. Without the key the
 * digest reveals nothing. Source: decision 0029.
 */
export const digestsOf = ({ personal }: Pick<AuditEntry, 'personal'>): Record<string, string> =>
  Object.fromEntries(Object.entries(personal).map(([place, { sealed }]) => [place, sha256(String(sealed))]));

/** Hex SHA-256 over the previous hash, a line feed, and the entry in canonical JSON (RFC 8785). */
export function hashOf(previous: string, entry: AuditEntry): string {
  const { personal, ...rest } = entry;
  return sha256(`${previous}\n${canonical({ ...rest, personal: digestsOf({ personal }) } as unknown as Json)}`);
}

/** JSON with sorted members, so that equal values are equal texts. */
export function canonical(value: Json): string {
  if (Array.isArray(value)) return `[${value.map(canonical).join(',')}]`;
  if (typeof value !== 'object' || value === null) return JSON.stringify(value);
  const members = Object.keys(value).filter((name) => value[name] !== undefined);
  return `{${members
    .sort()
    .map((name) => `${JSON.stringify(name)}:${canonical(value[name]!)}`)
    .join(',')}}`;
}
