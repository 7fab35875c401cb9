import { createHash, randomBytes } from 'node:crypto';
import type { CallerKind } from './caller';

/** Prefix of each kind of token but the JWT's; the rest is 64 hex characters. Source: spec doc1 §5.1. */
export const TOKEN_PREFIXES = {
  system_key: 'lm_sys_',
  user_api_key: 'lm_usr_',
  service_key: 'lm_svc_',
  popout: 'lm_pop_',
  overlay: 'lm_overlay_',
  shared_overlay: 'lm_share_',
  extension: 'lm_ext_',
  widget: 'lm_widget_',
} as const satisfies Partial<Record<CallerKind, string>>;
export type KeyKind = keyof typeof TOKEN_PREFIXES;

/** A JWT is `lm_` and then the token, whose header always begins `eyJ`. */
export const JWT_PREFIX = 'lm_eyJ';

/** Kinds that a URL may carry; long-lived keys come by header only, JWTs only on the upgrade. Source: spec doc1 §5.2, ruling c25. */
export const QUERY_KINDS: ReadonlySet<CallerKind> = new Set([
  'popout',
  'overlay',
  'shared_overlay',
  'extension',
  'widget',
]);

export interface NewKey {
  /** The full key: given to its owner once, stored nowhere. */
  key: string;
  /** Hex SHA-256, what is stored. */
  hash: string;
  /** For display: the kind's prefix and two characters of the random part. */
  prefix: string;
}

/** 32 random bytes under the kind's prefix. */
export function generateKey(kind: KeyKind): NewKey {
  const key = TOKEN_PREFIXES[kind] + randomBytes(32).toString('hex');
  return { key, hash: hashToken(key), prefix: displayPrefix(kind, key) };
}

export const displayPrefix = (kind: KeyKind, key: string): string => key.slice(0, TOKEN_PREFIXES[kind].length + 2);

/** Hex SHA-256: tokens are looked up by it, so no comparison ever sees a stored secret. */
export const hashToken = (token: string): string => createHash('sha256').update(token).digest('hex');

/** What a presented token claims to be by its shape; null when its prefix or length is nobody's. */
export function tokenKind(token: string): KeyKind | 'jwt' | null {
  if (token.startsWith(JWT_PREFIX)) return 'jwt';
  for (const [kind, prefix] of Object.entries(TOKEN_PREFIXES) as [KeyKind, string][]) {
    if (token.startsWith(prefix)) return kind;
  }
  return null;
}

/** True when the part after the prefix is what {@link generateKey} makes; anything else need not be looked up. */
export const wellFormedKey = (kind: KeyKind, token: string): boolean =>
  /^[0-9a-f]{64}$/.test(token.slice(TOKEN_PREFIXES[kind].length));
