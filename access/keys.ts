import { hash, randomBytes } from 'node:crypto';
import { CONTEXTS, type KeyKind } from './contexts';

export interface NewKey {
  /** The full key: given to its owner once, stored nowhere. */
  key: string;
  /** Hex SHA-256, what is stored. */
  hash: string;
  /** For display: the kind's prefix and two characters of the random part. */
  prefix: string;
}

/** 32 random bytes in hex under the kind's prefix. Source: spec doc1 §5.1. */
export function generateKey(kind: KeyKind): NewKey {
  const { prefix } = CONTEXTS[kind];
  const key = prefix + randomBytes(32).toString('hex');
  return { key, hash: hashToken(key), prefix: key.slice(0, prefix.length + 2) };
}

/** Hex SHA-256: tokens are looked up by it, so no comparison ever sees a stored secret. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');
