import { hash, verify } from '@node-rs/argon2';
import { hashToken } from '../../access/authentication/keys';
import { Slots } from '../../lib/async/slots';

/** Argon2id by OWASP's least costs: 19 MiB and two passes. */
const COSTS = { memoryCost: 19_456, timeCost: 2, parallelism: 1 };
/** Verifications at a time: each takes a core and 19 MiB. */
const slots = new Slots(1);
/** Verifications that may wait; further ones are refused at once. */
const MAX_WAITING = 40;
let waiting = 0;

export const hashPassword = (password: string): Promise<string> => slots.use(() => hash(password, COSTS));

let nobodys: string | undefined;

/**
 * Whether the password opens a link. An unknown link (undefined) costs the same work as a wrong password; a link
 * without password (null) costs none.
 * @returns 'busy' where too many verifications wait
 */
export async function opensLink(
  password_hash: string | null | undefined,
  password: string | null,
): Promise<boolean | 'busy'> {
  if (password_hash === null) return true;
  if (waiting >= MAX_WAITING) return 'busy';
  waiting += 1;
  try {
    nobodys ??= await hashPassword(hashToken(String(Math.random())));
    const held = password_hash ?? nobodys;
    const fits = await slots.use(() => verify(held, password ?? ''));
    return fits && password_hash !== undefined && password !== null;
  } finally {
    waiting -= 1;
  }
}
