import { createHmac, createPublicKey, timingSafeEqual, verify, type KeyObject } from 'node:crypto';
import { readTime } from '../../../lib/time/vendor-times';

/**
 * Checks of vendors' signatures, all over the raw bytes: a re-serialised body is another body.
 * Secrets come as lists, so that an old and a new one overlap while they are exchanged.
 */

/** Tolerance of a signed timestamp, in both directions. Spec doc3 §4.2. */
export const TOLERANCE_MS = 300_000;

export type HmacAlgorithm = 'sha1' | 'sha256' | 'sha384' | 'sha512';

/**
 * The secrets of a setting: one, or several separated by commas. A text with commas also counts as one whole secret,
 * because a vendor's secret may contain a comma.
 */
export function secretList(setting: string): string[] {
  if (setting.trim() === '') return [];
  const parts = setting
    .split(',')
    .map((part) => part.trim())
    .filter(Boolean);
  return parts.length === 1 ? parts : [setting, ...parts];
}

/**
 * True when `presented`, or one of several, is the HMAC of `body` under one of the secrets: made once for each secret,
 * however many are presented. Constant time for each pair; the length, which is public, is checked first.
 */
export function hmacMatches(
  algorithm: HmacAlgorithm,
  encoding: 'hex' | 'base64',
  secrets: readonly string[],
  body: Buffer,
  presented: string | readonly string[],
): boolean {
  const signatures: Buffer[] = [];
  for (const text of typeof presented === 'string' ? [presented] : presented) {
    const signature = decodeSignature(text, encoding);
    if (signature) signatures.push(signature);
  }
  if (signatures.length === 0) return false;
  let matched = false;
  for (const secret of secrets) {
    const expected = createHmac(algorithm, secret).update(body).digest();
    // No early return: the matching secret must not show in the time.
    for (const signature of signatures) {
      if (signature.length === expected.length && timingSafeEqual(signature, expected)) matched = true;
    }
  }
  return matched;
}

/** `Buffer.from` skips what it cannot decode, so the alphabet is checked first. */
function decodeSignature(text: string, encoding: 'hex' | 'base64'): Buffer | null {
  const trimmed = text.trim();
  if (trimmed.length > 1024) return null;
  const valid = encoding === 'hex' ? /^(?:[0-9a-fA-F]{2})+$/ : /^[A-Za-z0-9+/]+={0,2}$/;
  return valid.test(trimmed) ? Buffer.from(trimmed, encoding) : null;
}

/** Splits `sha256=<hex>`; null without such a prefix. WebSub lets a hub name any of these methods. */
export function prefixedSignature(header: string): { algorithm: HmacAlgorithm; hex: string } | null {
  const match = /^(sha1|sha256|sha384|sha512)=([0-9a-fA-F]+)$/i.exec(header.trim());
  return match ? { algorithm: match[1]!.toLowerCase() as HmacAlgorithm, hex: match[2]! } : null;
}

/**
 * Public keys of a setting, compiled once: PEM blocks, one after another; `\n` may be written as two characters, as
 * environment files do.
 * @throws Error that names the setting when it holds text but no readable RSA key.
 */
export function publicKeys(setting: string, name: string): KeyObject[] {
  if (setting.trim() === '') return [];
  const blocks = setting
    .replaceAll('\\n', '\n')
    .match(/-----BEGIN (?:RSA )?PUBLIC KEY-----[^-]+-----END (?:RSA )?PUBLIC KEY-----/g);
  if (!blocks) throw new Error(`${name}: must be a public key in PEM form`);
  return blocks.map((pem) => {
    let key: KeyObject;
    try {
      key = createPublicKey(pem);
    } catch (cause) {
      throw new Error(`${name}: must be a public key in PEM form`, { cause });
    }
    if (key.asymmetricKeyType !== 'rsa') throw new Error(`${name}: must be an RSA key`);
    return key;
  });
}

/** RSASSA-PKCS1-v1_5 with SHA-256, signature in base64, under any of the keys. */
export function rsaMatches(keys: readonly KeyObject[], signed: Buffer, presented: string): boolean {
  const signature = decodeSignature(presented, 'base64');
  return signature !== null && keys.some((key) => verify('sha256', signed, key, signature));
}

/**
 * True when `timestamp`, RFC 3339 or Unix time, lies within {@link TOLERANCE_MS} of `now` (Unix milliseconds). Counted
 * in whole seconds, as vendors sign them: else a signature of exactly that age would never count.
 */
export function isFresh(timestamp: string, now: number): boolean {
  const time = readTime(timestamp.trim());
  return time !== null && Math.abs(wholeSecond(now) - wholeSecond(time)) <= TOLERANCE_MS;
}

const wholeSecond = (ms: number): number => Math.floor(ms / 1000) * 1000;
