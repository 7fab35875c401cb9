import { createHash } from 'node:crypto';
import { ERASED_RAW, SAME_RAW_DAYS } from '../../../domain/common/records';
import { type Queryable, textArray } from '../../../engines/postgres/port';
import { withoutNul } from '../../../kernel/texts';
import type { LoggedRecord } from '../../../engines/records/port';
import type { LateLedger, RecordProjection } from '../../../kernel/projection';
import { ident } from '../../../kernel/sql';

/** The records of a batch that count for a projection, in their order. */
export interface Counting {
  records: readonly LoggedRecord[];
  /**
   * True when some records may have been applied earlier: the ledger names them already, or they have no external id.
   */
  again: boolean;
  /** Ids, in lower case, of the records that the ledger named before: their effects were committed with that entry. */
  applied: ReadonlySet<string>;
  /** Records that do not count, in the order of the batch. */
  passed_over: readonly LoggedRecord[];
}

const NONE: ReadonlySet<string> = new Set();

/** A record as a query of the ledger. */
interface Asked {
  record: LoggedRecord;
  id: string;
  account_id: string;
  external_id: string | null;
  /** The unsigned id of the delivery in earlier releases: searched, never written. */
  former_id: string | null;
  /** Platform, perhaps type, and digest of the signed bytes of a delivery without a signed id. */
  body: string | null;
}

type Source = Pick<RecordProjection, 'name' | 'from'>;

/**
 * Adds a batch to the projection's ledger, in the transaction of its effects. Of records with one external id the first
 * in the log's order counts, and of records without a signed id the first with these bytes; a redelivered record finds
 * itself in the ledger and counts again. Records without an external id always count, once per batch. Design §6,
 * docs/decisions/0003 and 0016.
 */
export async function takeIntoLedger(p: Source, batch: readonly LoggedRecord[], tx: Queryable): Promise<Counting> {
  const firsts = firstOfEachId(batch);
  let asked = firsts.map(questionOf);
  const nameless = asked.some(({ external_id }) => external_id === null);
  asked = asked.filter(({ external_id, former_id, body }) => (external_id ?? former_id ?? body) !== null);
  if (asked.length === 0) return { records: firsts, again: nameless, applied: NONE, passed_over: [] };
  const passed_over = new Set<string>();
  if (shareKeys(asked)) {
    // A refused record takes no key from the others, so the known records are read first, and the rest is decided in
    // order.
    const left = inOrder(asked, await ask(KNOWN, p, asked, tx));
    for (const { id } of asked) if (!left.has(id)) passed_over.add(id);
    asked = asked.filter(({ id }) => left.has(id));
  }
  const applied = new Set<string>();
  for (const { id, own } of asked.length > 0 ? await ask(takingOf(asked), p, asked, tx) : []) {
    (own ? applied : passed_over).add(id);
  }
  return { ...divided(firsts, passed_over), again: nameless || applied.size > 0, applied };
}

/**
 * Returns the records of a batch that the ledger does not pass over, for a rebuild: it reads and never writes. With
 * `at_once` it checks these records alone; {@link dropUncounted} checks the others.
 */
export async function askLedger(
  p: Source,
  batch: readonly LoggedRecord[],
  tx: Queryable,
  at_once?: LateLedger['at_once'],
): Promise<Counting> {
  const firsts = firstOfEachId(batch);
  const now = at_once ? firsts.filter(at_once) : firsts;
  const asked = now.map(questionOf).filter(({ external_id }) => external_id !== null);
  if (asked.length === 0) return { records: firsts, again: true, applied: NONE, passed_over: [] };
  const passed_over = (await ask(PASSED_OVER, p, asked, tx)).map(({ id }) => id);
  return { ...divided(firsts, new Set(passed_over)), again: true, applied: NONE };
}

/** Names in SQL of the partitions of a table that hold rows; of a table without partitions its own. */
export async function partsOf(table: string, tx: Queryable): Promise<string[]> {
  const rows = await tx.query<{ part: string }>(
    'select relid::regclass::text as part from pg_partition_tree($1::regclass) where isleaf order by 1',
    [ident(table)],
  );
  return rows.length === 0 ? [ident(table)] : rows.map(({ part }) => part);
}

/** Selects the records that have effects in the projection. Repetitions of stored records have none. */
export async function concerned(
  p: Source & Pick<RecordProjection, 'concerns'>,
  batch: readonly LoggedRecord[],
  tx: Queryable,
): Promise<readonly LoggedRecord[]> {
  if (p.concerns === undefined) return batch;
  const { stored_by } = p.concerns;
  const some = await p.concerns.among(batch, tx);
  if (some.length === 0 || stored_by === undefined) return some;
  const known = await ask(KNOWN, { name: stored_by, from: p.from }, some.map(questionOf), tx);
  return divided(some, new Set(known.filter(({ own }) => !own).map(({ id }) => id))).records;
}

/** Deletes the rows of records that the ledger passes over from a part of the table of {@link LateLedger}. */
export async function dropUncounted(p: Source, part: string, tx: Queryable): Promise<void> {
  await tx.query(
    `delete from ${part} e where external_id is not null and not exists (
       select from ledger l where l.projection = $1 and l.topic = $2
         and l.account_id = e.account_id and l.external_id = e.external_id and l.record_id = e.id)`,
    [p.name, p.from.topic],
  );
}

/** Deletes bodies older than {@link SAME_RAW_DAYS}, a bounded number at a time. Returns their number. */
export async function trimBodies(db: Queryable): Promise<number> {
  for (let trimmed = 0; ;) {
    const rows = await db.query(
      `delete from ledger_bodies where (account_id, body, projection) in (
         select account_id, body, projection from ledger_bodies
         where taken_at < now() - make_interval(days => $1) limit 10000
       ) returning 1 as one`,
      [SAME_RAW_DAYS],
    );
    trimmed += rows.length;
    if (rows.length === 0) return trimmed;
  }
}

/**
 * Makes the ledger's partitions of this quarter and of those that begin within `months`. Call it at the start and once
 * a day, from any number of processes; returns the number of new partitions. Without it rows are stored in the default
 * partition.
 */
export async function ensureLedgerPartitions(db: Queryable, months = 2): Promise<number> {
  for (let made = 0; ;) {
    const [row] = await db.query<{ made: number }>('select ensure_ledger_partitions($1) as made', [months]);
    if (row!.made === 0) return made;
    made += row!.made;
  }
}

/** A record can be stored twice in the log, when its producer could not know that the first attempt was stored. */
function firstOfEachId(batch: readonly LoggedRecord[]): readonly LoggedRecord[] {
  const firsts = new Map<string, LoggedRecord>();
  for (const record of batch) if (!firsts.has(record.id)) firsts.set(record.id, record);
  return firsts.size === batch.length ? batch : [...firsts.values()];
}

/** Divides records into those that count and the others, by the ids of the others. */
function divided(
  records: readonly LoggedRecord[],
  others: ReadonlySet<string>,
): Pick<Counting, 'records' | 'passed_over'> {
  if (others.size === 0) return { records, passed_over: [] };
  const isOther = ({ id }: LoggedRecord) => others.has(id.toLowerCase());
  return { records: records.filter((one) => !isOther(one)), passed_over: records.filter(isOther) };
}

function questionOf(record: LoggedRecord): Asked {
  const { external_id, former_id } = record;
  return {
    record,
    id: record.id.toLowerCase(),
    account_id: record.account_id.toLowerCase(),
    external_id: external_id === null || external_id === '' ? null : withoutNul(external_id),
    former_id: former_id === undefined || former_id === external_id ? null : withoutNul(former_id),
    body: bodyKey(record),
  };
}

/** Key of the signed bytes in the ledger, next to the account. Null when the bytes do not matter, or are erased. */
function bodyKey({ platform, type, raw, same_raw }: LoggedRecord): string | null {
  if (same_raw === undefined || raw === ERASED_RAW) return null;
  const digest = createHash('sha256').update(raw).digest('hex');
  return same_raw === 'once_per_type' ? `${platform}:${type}:${digest}` : `${platform}:${digest}`;
}

// An account's id has one length, so that no two pairs make one key.
const idKey = (account_id: string, external_id: string) => `${account_id} id ${external_id}`;
const keysOf = ({ account_id, external_id, former_id, body }: Asked): string[] => [
  ...(external_id === null ? [] : [idKey(account_id, external_id)]),
  ...(former_id === null ? [] : [idKey(account_id, former_id)]),
  ...(body === null ? [] : [`${account_id} body ${body}`]),
];

/** Whether any two records have the same id or the same bytes. */
function shareKeys(asked: readonly Asked[]): boolean {
  const keys = new Set<string>();
  let count = 0;
  for (const one of asked) {
    for (const key of keysOf(one)) {
      keys.add(key);
      count += 1;
      if (keys.size < count) return true;
    }
  }
  return false;
}

/** Ids of the records that count when each takes its keys in order. A record that is passed over takes none. */
function inOrder(asked: readonly Asked[], known: readonly Answer[]): Set<string> {
  const refused = new Set(known.filter(({ own }) => !own).map(({ id }) => id));
  const taken = new Set<string>();
  const left = new Set<string>();
  for (const one of asked) {
    const keys = keysOf(one);
    if (refused.has(one.id) || keys.some((key) => taken.has(key))) continue;
    for (const key of keys) taken.add(key);
    left.add(one.id);
  }
  return left;
}

interface Answer {
  id: string;
  /** True when the ledger names this very record, false when it names another. */
  own: boolean;
}

/** A function of the database, see migrations/functions/. */
interface LedgerLookup {
  name: string;
  /** True when the function takes former ids and bodies. */
  unsigned: boolean;
}
const PASSED_OVER: LedgerLookup = { name: 'ledger_passed_over', unsigned: false };
const KNOWN: LedgerLookup = { name: 'ledger_known', unsigned: true };
const TAKE: LedgerLookup = { name: 'ledger_take', unsigned: false };
const TAKE_BY_ACCOUNT: LedgerLookup = { name: 'ledger_take_by_account', unsigned: false };
const TAKE_UNSIGNED: LedgerLookup = { name: 'ledger_take_unsigned', unsigned: true };

/** Records per account from which on a joint search is cheaper. */
const TOGETHER = 4;

function takingOf(asked: readonly Asked[]): LedgerLookup {
  const accounts = new Set<string>();
  for (const { account_id, former_id, body } of asked) {
    if (former_id !== null || body !== null) return TAKE_UNSIGNED;
    accounts.add(account_id);
  }
  return asked.length < TOGETHER * accounts.size ? TAKE : TAKE_BY_ACCOUNT;
}

function ask(question: LedgerLookup, p: Source, asked: readonly Asked[], tx: Queryable): Promise<Answer[]> {
  const column = (name: Exclude<keyof Asked, 'record'>) => textArray(asked.map((one) => one[name]));
  const signed = [p.name, p.from.topic, column('account_id'), column('external_id'), column('id')];
  const values = question.unsigned ? [...signed, column('former_id'), column('body')] : signed;
  const parameters = values.map((_, n) => `$${n + 1}`).join(', ');
  return tx.query<Answer & Record<string, unknown>>(
    `select id, own from ${question.name}(${parameters})`,
    values,
    question.name,
  );
}
