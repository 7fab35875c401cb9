import { hash, randomBytes } from 'node:crypto';
import { CONTEXTS, type KeyKind } from './contexts';

export interface NewKey {
  /** The full key: shown to its owner once, never stored. */
  key: string;
  /** Hex SHA-256; stored. */
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

/** Hex SHA-256, the key of token look-ups, so that no comparison reads a stored secret. */
export const hashToken = (token: string): string => hash('sha256', token, 'hex');
