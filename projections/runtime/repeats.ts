import { createHash } from 'node:crypto';
import { ERASED_RAW, type RecordEnvelope, SAME_RAW_DAYS } from '../../domain/records';
import { type Queryable, textArray } from '../../engines/postgres/port';

type Facts = Pick<RecordEnvelope, 'id' | 'account_id' | 'type' | 'platform' | 'external_id' | 'raw'> & {
  same_raw: RecordEnvelope['same_raw'];
  former_id: RecordEnvelope['former_id'];
};

/** One record as the ledger is asked about it. */
interface Asked {
  id: string;
  account_id: string;
  ids: string[];
  body: string | null;
}

/**
 * The records of a batch without those that no signature tells from an earlier one: the same bytes came before under
 * another unsigned id, or the delivery counted under its former id. Records with signed ids alone pass. What stays
 * claims its bytes, in the caller's transaction, and must then be given to the ledger of ids. Decided in the batch's
 * order, as the ledger does. docs/decisions/0003.
 */
export async function withoutRepeats<R extends Facts>(batch: readonly R[], topic: string, tx: Queryable): Promise<R[]> {
  const asked = new Map<R, Asked>();
  for (const record of batch) {
    if (record.same_raw === undefined && record.former_id === undefined) continue;
    const { id, account_id, external_id, former_id } = record;
    const ids = [external_id, former_id].filter((one): one is string => typeof one === 'string');
    asked.set(record, { id, account_id, ids, body: bodyKey(record) });
  }
  if (asked.size === 0) return [...batch];
  const taken = await takenAmong([...asked.values()], topic, tx);
  const claims: Asked[] = [];
  const first = batch.filter((record) => {
    const one = asked.get(record);
    const keys = one ? keysOf(one) : idKey(record);
    if (one && keys.some((key) => taken.has(key))) return false;
    for (const key of keys) taken.add(key);
    if (one && one.body !== null) claims.push(one);
    return true;
  });
  const lost = await claim(claims, tx);
  return first.filter(({ id }) => !lost.has(id));
}

/** Deletes what is older than {@link SAME_RAW_DAYS}, a bounded number at a time. Returns how many. */
export async function trimBodies(db: Queryable): Promise<number> {
  for (let trimmed = 0; ;) {
    const rows = await db.query(
      `delete from ingested_bodies where (account_id, body) in (
         select account_id, body from ingested_bodies where taken_at < now() - make_interval(days => $1) limit 10000
       ) returning 1 as one`,
      [SAME_RAW_DAYS],
    );
    trimmed += rows.length;
    if (rows.length === 0) return trimmed;
  }
}

/**
 * The signed bytes as the ledger knows them, beside the account: with the platform they stand for the connection.
 * Migration 0022 makes the same of events that came before. Null where they are no matter, or gone.
 */
function bodyKey({ platform, type, raw, same_raw }: Facts): string | null {
  if (same_raw === undefined || raw === ERASED_RAW) return null;
  const digest = createHash('sha256').update(raw).digest('hex');
  return same_raw === 'once_per_type' ? `${platform}:${type}:${digest}` : `${platform}:${digest}`;
}

// An account's id has one length, so that no two pairs make one key.
const idKey = ({ account_id, external_id }: Pick<Facts, 'account_id' | 'external_id'>): string[] =>
  external_id === null ? [] : [`${account_id} id ${external_id}`];
const keysOf = ({ account_id, ids, body }: Asked): string[] => [
  ...ids.map((id) => `${account_id} id ${id}`),
  ...(body === null ? [] : [`${account_id} body ${body}`]),
];

async function takenAmong(asked: readonly Asked[], topic: string, tx: Queryable): Promise<Set<string>> {
  const ids = asked.flatMap((one) => one.ids.map((id) => ({ account_id: one.account_id, key: id })));
  const bodies = asked.flatMap(({ account_id, body }) => (body === null ? [] : [{ account_id, key: body }]));
  const lists = [ids, bodies].flatMap((keys) => [
    textArray(keys.map(({ account_id }) => account_id)),
    textArray(keys.map(({ key }) => key)),
  ]);
  const rows = await tx.query<{ taken: string }>(
    `select i.account_id || ' id ' || i.key as taken
       from (select unnest($1::text[])::uuid as account_id, unnest($2::text[]) as key) i
       join ingested_ids l on l.account_id = i.account_id and l.topic = $5 and l.external_id = i.key
     union all
     select b.account_id || ' body ' || b.key
       from (select unnest($3::text[])::uuid as account_id, unnest($4::text[]) as key) b
       join ingested_bodies l on l.account_id = b.account_id and l.body = b.key`,
    [...lists, topic],
    'repeats-taken',
  );
  return new Set(rows.map(({ taken }) => taken));
}

/** Returns the ids of records whose bytes another worker has claimed since they were looked for. */
async function claim(claims: readonly Asked[], tx: Queryable): Promise<Set<string>> {
  if (claims.length === 0) return new Set();
  const column = (name: 'id' | 'account_id' | 'body') => textArray(claims.map((one) => one[name]));
  // One order for all workers, so that two never wait for each other in a circle.
  const claimed = await tx.query<{ record_id: string }>(
    `insert into ingested_bodies (account_id, body, record_id)
     select * from (select unnest($1::text[])::uuid as account_id, unnest($2::text[]) as body, unnest($3::text[])::uuid as id) c
     order by account_id, body
     on conflict do nothing returning record_id`,
    [column('account_id'), column('body'), column('id')],
    'repeats-claim',
  );
  const won = new Set(claimed.map(({ record_id }) => record_id));
  return new Set(claims.filter(({ id }) => !won.has(id)).map(({ id }) => id));
}
