import { v7 } from 'uuid';
import { handle } from '../../app/write-path/command-handler';
import { generateKey } from '../../access/authentication/keys';
import { DomainError } from '../../kernel/errors';
import { systemKey, systemKeyStream } from '../../domain/credentials/system-keys';
import { AdminError, asOperator, nowText, OPERATOR, type AdminServices } from './shared/operator';

export interface MadeSystemKey {
  key_id: string;
  /** Shown once; only its hash is stored. */
  key: string;
  key_prefix: string;
}

/** Creates a system key with these grants. */
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

/** Maximum of listed keys. */
const MAX_LISTED_KEYS = 20;

/** The other system keys in the read model, newest first, a line each. */
export async function otherSystemKeys({ db }: Pick<AdminServices, 'db'>, key_id: string): Promise<string[]> {
  const rows = await db.query<{ id: string; label: string; key_prefix: string; created_at: string }>(
    `select id, label, key_prefix, created_at from system_keys where id <> $1 order by created_at desc, id desc
     limit $2`,
    [key_id, MAX_LISTED_KEYS + 1],
  );
  const lines = rows.map(({ id, label, key_prefix, created_at }) => `${id} ${key_prefix}… ${label}, of ${created_at}`);
  return rows.length > MAX_LISTED_KEYS ? [...lines.slice(0, MAX_LISTED_KEYS), '…'] : lines;
}

/** Revokes a system key. @throws AdminError for an unknown or revoked key */
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
