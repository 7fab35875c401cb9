import { z } from 'zod';
import { DomainError } from '../../kernel/errors';

/** Members of every key's creation event: its hash and its visible parts, never the key. */
export const KEY_FACTS = {
  key_hash: z.string().describe('Hex SHA-256 of the full key'),
  key_prefix: z.string(),
  label: z.string(),
  permissions: z.array(z.string()),
};

/** Life cycle of keys and tokens of every kind: created once, changed while active, revoked for good. */
export interface KeyLife {
  status: 'none' | 'active' | 'revoked';
  key_id: string;
}

/** @throws DomainError KEY_EXISTS, EXPIRY_IN_THE_PAST */
export function requireNewKey({ status, key_id }: KeyLife, now: string, expires_at: string | null = null): void {
  if (status !== 'none') throw new DomainError('KEY_EXISTS', { key_id });
  if (expires_at !== null && Date.parse(expires_at) <= Date.parse(now)) throw new DomainError('EXPIRY_IN_THE_PAST');
}

/** @throws DomainError KEY_NOT_FOUND */
export function requireLivingKey({ status, key_id }: KeyLife): void {
  if (status !== 'active') throw new DomainError('KEY_NOT_FOUND', { key_id });
}
