import { createCipheriv, createDecipheriv, createHash, randomFillSync } from 'node:crypto';

/** 1: encrypted for one subject. 2: encrypted for several subjects together; older releases refuse this format. */
export type Format = 1 | 2;
const IV_BYTES = 12;
const TAG_BYTES = 16;
const HEAD_BYTES = 1 + IV_BYTES + TAG_BYTES;

// Random bytes are generated in bulk, because single requests are expensive.
const pool = Buffer.alloc(IV_BYTES * 512);
let used = pool.length;

function nonce(into: Buffer, at: number): void {
  if (used === pool.length) {
    randomFillSync(pool);
    used = 0;
  }
  pool.copy(into, at, used, used + IV_BYTES);
  used += IV_BYTES;
}

/** Derives a key from several keys, in their order; every one of them is needed. */
export function combined(keys: readonly Buffer[]): Buffer {
  const hash = createHash('sha256').update('lumio records of several persons');
  for (const key of keys) hash.update(key);
  return hash.digest();
}

/** AES-256-GCM: format byte, nonce, tag, ciphertext. `context` binds the text to its record. */
export function encrypt(text: string, key: Buffer, context: string, format: Format = 1): Buffer {
  const sealed = Buffer.allocUnsafe(HEAD_BYTES + Buffer.byteLength(text));
  sealed[0] = format;
  nonce(sealed, 1);
  const cipher = createCipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + IV_BYTES));
  cipher.setAAD(Buffer.from(context));
  cipher.update(text, 'utf8').copy(sealed, HEAD_BYTES);
  cipher.final();
  cipher.getAuthTag().copy(sealed, 1 + IV_BYTES);
  return sealed;
}

/** @throws Error when the bytes are not the result of {@link encrypt} with this key and context */
export function decrypt(sealed: Buffer, key: Buffer, context: string, format: Format = 1): string {
  if (sealed.length < HEAD_BYTES || sealed[0] !== format) throw new Error('raw is not in a known encrypted form');
  const decipher = createDecipheriv('aes-256-gcm', key, sealed.subarray(1, 1 + IV_BYTES), { authTagLength: TAG_BYTES });
  decipher.setAAD(Buffer.from(context));
  decipher.setAuthTag(sealed.subarray(1 + IV_BYTES, HEAD_BYTES));
  const clear = decipher.update(sealed.subarray(HEAD_BYTES));
  decipher.final();
  return clear.toString();
}
