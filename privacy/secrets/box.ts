import {
  createCipheriv,
  createDecipheriv,
  createHmac,
  hkdfSync,
  type KeyObject,
  randomBytes,
  timingSafeEqual,
} from 'node:crypto';
import type { MasterKeys } from './master-keys';
import { SecretUnreadable, type SecretBox } from './port';

const VERSION = 'v1';
const IV_BYTES = 12;
const TAG_BYTES = 16;

/** MAC with a derived key, because the master key itself encrypts. */
function macOf(master: KeyObject, text: string, context: string): Buffer {
  const key = hkdfSync('sha256', master, Buffer.alloc(0), `lumio mac ${context}`, 32);
  return createHmac('sha256', Buffer.from(key)).update(text).digest();
}

/**
 * AES-256-GCM with the context as additional data. A sealed text is
 * `v1.<master key id>.<base64url of nonce, tag, ciphertext>`: keys are rotated by configuring a new one first, and
 * texts of the old key stay readable while it is listed.
 */
export function createSecretBox(master_keys: MasterKeys): SecretBox {
  return {
    key_ids: [...master_keys.by_id.keys()],
    seal(secret, context) {
      const { id, key } = master_keys.current;
      const iv = randomBytes(IV_BYTES);
      const cipher = createCipheriv('aes-256-gcm', key, iv);
      cipher.setAAD(Buffer.from(context));
      const body = Buffer.concat([
        cipher.update(typeof secret === 'string' ? Buffer.from(secret) : secret),
        cipher.final(),
      ]);
      return `${VERSION}.${id}.${Buffer.concat([iv, cipher.getAuthTag(), body]).toString('base64url')}`;
    },
    open(sealed, context) {
      const [version, id, encoded, rest] = sealed.split('.');
      if (version !== VERSION || !id || !encoded || rest !== undefined)
        throw new SecretUnreadable('not a sealed secret');
      const master = master_keys.by_id.get(id);
      if (!master) throw new SecretUnreadable(`sealed under the master key ${id}, which secrets.keys does not list`);
      const bytes = Buffer.from(encoded, 'base64url');
      if (bytes.length < IV_BYTES + TAG_BYTES) throw new SecretUnreadable('the sealed secret is cut off');
      const decipher = createDecipheriv('aes-256-gcm', master.key, bytes.subarray(0, IV_BYTES), {
        authTagLength: TAG_BYTES,
      });
      decipher.setAAD(Buffer.from(context));
      decipher.setAuthTag(bytes.subarray(IV_BYTES, IV_BYTES + TAG_BYTES));
      try {
        return Buffer.concat([decipher.update(bytes.subarray(IV_BYTES + TAG_BYTES)), decipher.final()]);
      } catch {
        throw new SecretUnreadable(`the sealed secret does not open for ${context} with the master key ${id}`);
      }
    },
    sign(text, context) {
      const { id, key } = master_keys.current;
      return `${VERSION}.${id}.${macOf(key, text, context).toString('base64url')}`;
    },
    verify(mac, text, context) {
      const [version, id, encoded, rest] = mac.split('.');
      if (version !== VERSION || !id || !encoded || rest !== undefined) throw new SecretUnreadable('not a MAC');
      const master = master_keys.by_id.get(id);
      if (!master) throw new SecretUnreadable(`signed under the master key ${id}, which secrets.keys does not list`);
      const [sent, right] = [Buffer.from(encoded, 'base64url'), macOf(master.key, text, context)];
      if (sent.length !== right.length || !timingSafeEqual(sent, right)) {
        throw new SecretUnreadable(`the MAC is not that of the text with the master key ${id}`);
      }
    },
    isStale: (sealed) => !sealed.startsWith(`${VERSION}.${master_keys.current.id}.`),
  };
}
