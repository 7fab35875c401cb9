import type { Revocation } from '../../../access/authentication/revocations';
import type { Queryable } from '../../../engines/postgres/port';
import type { ApplyMode } from '../../../kernel/projection';

/**
 * Publishes revocations to every node, in the projection's own transaction. A rebuild publishes none, because they were
 * published when they happened.
 */
export async function recordRevocations(
  tx: Queryable,
  mode: ApplyMode,
  revocations: readonly Partial<Revocation>[],
): Promise<void> {
  if (mode.rebuilding || mode.silent || revocations.length === 0) return;
  await tx.query(
    `insert into revocations (credential_id, user_id, account_id)
     select credential_id, user_id, account_id
       from jsonb_to_recordset($1::jsonb) as r (credential_id text, user_id text, account_id text)`,
    [JSON.stringify(revocations)],
  );
}
