import { hashOf, NO_HASH } from '../../views/audit/audit-hashes';
import { AUDIT_COLUMNS, type AuditRow, entryOfRow } from '../../views/audit/audit-log';
import type { Queryable, Row } from '../../engines/postgres/port';

/** First fault of a chain of the audit log. */
export interface BrokenChain {
  chain: string;
  /** Number of the first wrong entry. */
  number: number;
  /** Id of that entry; null when it is missing. */
  id: string | null;
  why: 'changed' | 'missing' | 'added';
}

export interface Verified {
  chains: number;
  entries: number;
  /** The first break of each chain that has one. */
  broken: BrokenChain[];
}

export interface VerifyOptions {
  /** Only this chain. */
  chain?: string;
  /** Entries read at a time. Default 2,000. */
  page?: number;
  onProgress?(entries: number): void;
}

/** An entry with the end of its chain, from one snapshot. */
type Seen = AuditRow & { head_number: number | null; head_hash: string | null };

/**
 * Reads all chains in order and recomputes every hash. Each page is a separate statement, so concurrent appends are
 * neither delayed nor reported as faults.
 */
export async function verifyAuditLog(db: Queryable, options: VerifyOptions = {}): Promise<Verified> {
  const found: Verified = { chains: 0, entries: 0, broken: [] };
  let last: Seen | null = null;
  let whole = true;
  const look = (broken: BrokenChain | null) => {
    if (broken === null || !whole) return;
    whole = false;
    found.broken.push(broken);
  };
  for await (const row of rowsOf(db, options)) {
    if (row.chain !== last?.chain) {
      look(last && endFault(last));
      found.chains += 1;
      last = null;
      whole = true;
    }
    look(faultOf(row, last));
    last = row;
    found.entries += 1;
    options.onProgress?.(found.entries);
  }
  look(last && endFault(last));
  for (const { chain, number } of await emptyChains(db, options)) {
    found.chains += 1;
    found.broken.push({ chain, number, id: null, why: 'missing' });
  }
  return found;
}

/** Fault of a row by its predecessor in the chain; null for a sound one. */
function faultOf(row: Seen, before: Seen | null): BrokenChain | null {
  const { chain, number, id, hash, head_number, head_hash } = row;
  if (head_number === null || number > head_number) return { chain, number, id, why: 'added' };
  const expected = (before?.number ?? 0) + 1;
  if (number !== expected) return { chain, number: expected, id: null, why: 'missing' };
  const is_intact = hashOf(before?.hash ?? NO_HASH, entryOfRow(row)) === hash;
  return is_intact && (number !== head_number || hash === head_hash) ? null : { chain, number, id, why: 'changed' };
}

/** Fault of a chain that is shorter than its recorded end; null otherwise. */
function endFault({ chain, number, head_number }: Seen): BrokenChain | null {
  return number < (head_number ?? 0) ? { chain, number: number + 1, id: null, why: 'missing' } : null;
}

async function* rowsOf(db: Queryable, { chain, page = 2000 }: VerifyOptions): AsyncGenerator<Seen> {
  for (let after: [string, number] = ['', 0]; ;) {
    const rows = await db.query<Seen & Row>(
      `select ${AUDIT_COLUMNS}, head_number, head_hash from audit_log
       left join (select chain, number as head_number, hash as head_hash from audit_log_heads) h using (chain)
       where ($1::text is null or chain = $1) and (chain, number) > ($2, $3) order by chain, number limit ${page}`,
      [chain ?? null, ...after],
    );
    yield* rows;
    if (rows.length < page) return;
    const { chain: in_chain, number } = rows[rows.length - 1]!;
    after = [in_chain, number];
  }
}

/** Chains with a recorded end but no entries. */
const emptyChains = (db: Queryable, { chain }: VerifyOptions) =>
  db.query<{ chain: string; number: number }>(
    `select chain, 1 as number from audit_log_heads h
     where ($1::text is null or chain = $1) and not exists (select from audit_log l where l.chain = h.chain)
     order by chain`,
    [chain ?? null],
  );
