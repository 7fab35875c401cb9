import { decrypt, encrypt } from '../../records/cipher';
import type { SubjectKeys } from '../../../privacy/subject-keys/port';
import { ipContext, type Metadata, type StoredEvent } from '../port';

/** Days after the month of writing for which an address without a person stays readable: no erasure could reach it. */
const ACCOUNT_IPS_DAYS = 90;
const DAY_MS = 86_400_000;

/** The key of an account's addresses of this month, and when it is destroyed. */
function accountKey({ account_id }: Metadata, now: Date): { subject: string; expires_at: Date } {
  const month = now.toISOString().slice(0, 7);
  const ends = Date.UTC(now.getUTCFullYear(), now.getUTCMonth() + 1);
  return {
    subject: `account-ips:${account_id}:${month}`,
    expires_at: new Date(ends + ACCOUNT_IPS_DAYS * DAY_MS),
  };
}

/**
 * Metadata with `ip` encrypted, as `ip_sealed` and `ip_key`: under the key of the acting person, so that the person's
 * erasure covers it; without a person under a key of the account that expires.
 */
export async function sealCallerIp(keys: SubjectKeys, metadata: Metadata, now = new Date()): Promise<Metadata> {
  const { ip, ...rest } = metadata;
  if (ip === undefined) return metadata;
  const { subject, expires_at } = personOf(rest) ?? accountKey(rest, now);
  const { key, key_id } = (await keys.forWriting([subject], expires_at)).get(subject)!;
  return { ...rest, ip_sealed: encrypt(ip, key, ipContext(rest)).toString('base64'), ip_key: key_id };
}

/** The subject of the person who acts. */
export function personOf({ actor_id }: Metadata): { subject: string; expires_at?: undefined } | undefined {
  return actor_id === undefined ? undefined : { subject: `user:${actor_id}` };
}

/**
 * Decrypts the `ip` in the metadata of events; absent where the person was erased, or the key of the account has
 * expired.
 */
export async function openCallerIps(keys: SubjectKeys, events: readonly StoredEvent[]): Promise<StoredEvent[]> {
  const found = await keys.forReading(events.flatMap(({ metadata }) => metadata['ip_key'] ?? []));
  return events.map((event) => {
    const { ip_sealed, ip_key, ...rest } = event.metadata;
    if (ip_sealed === undefined || ip_key === undefined) return event;
    const key = found.get(ip_key);
    const ip = key && decrypt(Buffer.from(ip_sealed, 'base64'), key, ipContext(rest));
    return { ...event, metadata: ip === undefined ? rest : { ...rest, ip } };
  });
}
