import type { Revocation } from '../../access/revocations';
import type { Queryable } from '../../engines/postgres/port';
import type { ApplyMode } from '../../kernel/projection';

/**
 * Tells every node, in the projection's own transaction, what no longer holds. A rebuild tells nothing: it was told
 * when it happened.
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
