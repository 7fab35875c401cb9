import { v7 } from 'uuid';
import { handle } from '../../access/handle';
import { generateKey } from '../../access/keys';
import { DomainError } from '../../kernel/errors';
import { systemKey, systemKeyStream } from '../../domain/system-keys';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './operator';

export interface MadeSystemKey {
  key_id: string;
  /** Shown once: only its hash is kept. */
  key: string;
  key_prefix: string;
}

/** Makes a system key with these grants. */
export async function createSystemKey(
  services: AdminServices,
  { label, permissions }: { label: string; permissions: readonly string[] },
): Promise<MadeSystemKey> {
  const key_id = v7();
  const { key, hash, prefix } = generateKey('system_key');
  await handle(asOperator(OPERATOR), services, {
    decider: systemKey,
    stream: systemKeyStream(key_id),
    command: {
      type: 'system_key:create',
      key_id,
      key_hash: hash,
      key_prefix: prefix,
      label,
      permissions: [...permissions],
      now: nowText(),
    },
  });
  return { key_id, key, key_prefix: prefix };
}

/** Ends a system key. @throws AdminError when there is none, or none any more */
export async function revokeSystemKey(services: AdminServices, key_id: string): Promise<void> {
  try {
    await handle(asOperator(OPERATOR), services, {
      decider: systemKey,
      stream: systemKeyStream(key_id),
      command: { type: 'system_key:revoke', now: nowText() },
    });
  } catch (error) {
    if (!(error instanceof DomainError && error.reason === 'KEY_NOT_FOUND')) throw error;
    throw new AdminError(`there is no system key ${key_id} that could be revoked`);
  }
}
