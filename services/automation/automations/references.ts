import { type Graph, type Reference, referencesOf } from '../../../domain/automation/automation-graphs';
import type { ReferenceKind } from '../../../domain/automation/nodes/node-type';
import type { Queryable } from '../../../engines/postgres/port';

/** Things of an account ($1) by their ids ($2), for each kind that a table lists. */
const FOUND: Partial<Record<ReferenceKind, string>> = {
  automation: 'select id::text as id from automations where account_id = $1 and id = any($2::text[]::uuid[])',
  sound: 'select id::text as id from sounds where account_id = $1 and id = any($2::text[]::uuid[])',
  overlay: 'select id::text as id from overlays where account_id = $1 and id = any($2::text[]::uuid[])',
};

/** The first thing that a graph names and the account does not have; undefined where it has all. */
export async function missingReference(
  db: Pick<Queryable, 'query'>,
  account_id: string,
  graph: Graph,
): Promise<Reference | undefined> {
  const references = referencesOf(graph);
  for (const [kind, statement] of Object.entries(FOUND)) {
    const named = references.filter((one) => one.kind === kind);
    if (named.length === 0) continue;
    const rows = await db.query<{ id: string }>(statement, [account_id, named.map(({ id }) => id)]);
    const found = new Set(rows.map(({ id }) => id));
    const missing = named.find(({ id }) => !found.has(id.toLowerCase()));
    if (missing !== undefined) return missing;
  }
  return undefined;
}
