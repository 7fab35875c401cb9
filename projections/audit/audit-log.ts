import { hashOf, NO_HASH } from '../../views/audit/audit-hashes';
import { type AuditFacts, type AuditedEvent, factsOf, type AuditDetail } from '../../domain/audit/audit-entries';
import type { AuditEntry, Sealed } from '../../domain/audit/audit-log';
import { allSettledOrThrow } from '../../lib/async/all-settled';
import { shownInstant } from '../../lib/time/instants';
import { ipContext, type StoredEvent } from '../../engines/event-store/port';
import { jsonArray, type Queryable, textArray } from '../../engines/postgres/port';
import type { EventCatalogue } from '../../kernel/event';
import type { JsonObject } from '../../lib/json/json';
import { everyEvent, projection, type EventProjection } from '../../kernel/projection';

/**
 * Audit log: one entry for each domain event with its action, target and actor, in hash chains. Chains are sequential,
 * so a batch reads the heads of its chains and the last values of its targets, makes its entries in memory, and writes
 * them in one statement. Decision 0029.
 */
export const auditLog = (declared: EventCatalogue): EventProjection =>
  projection<EventProjection>({
    name: 'audit-log',
    version: 2,
    tables: ['audit_log', 'audit_log_heads', 'audit_log_targets'],
    late_indexes: [
      'audit_log_ids',
      'audit_log_newest',
      'audit_log_times',
      'audit_log_actions',
      'audit_log_all_actions',
      'audit_log_actors',
      'audit_log_targets_newest',
    ],
    from: everyEvent([...declared.keys()]),
    awaited: false,
    async apply(batch, tx) {
      const found = batch.flatMap((event) => {
        const facts = factsOf(event, declared.get(event.type)!);
        return facts === null ? [] : [{ event, facts }];
      });
      if (found.length === 0) return [];
      const [heads, targets] = await allSettledOrThrow([headsOf(found, tx), targetsOf(found, tx)]);
      const rows = found.map(({ event, facts }) => {
        const { chain } = facts;
        const key = targetKey(facts);
        const known = targets.get(key);
        const { entry, now } = entryOf(event, facts, known?.said ?? null);
        targets.set(key, { facts, said: now });
        const head = heads.get(chain) ?? { number: 0, hash: NO_HASH };
        const next = { number: head.number + 1, hash: hashOf(head.hash, entry), entry };
        heads.set(chain, next);
        return next;
      });
      await tx.query(WRITE, [...entryColumns(rows), ...targetColumns([...targets.values()])], 'audit-log-write');
      return [];
    },
  });

interface AuditRecord {
  event: StoredEvent;
  facts: AuditFacts;
}

/** Last entry of a chain. */
interface Head {
  number: number;
  hash: string;
}

interface Target {
  facts: Pick<AuditFacts, 'chain' | 'target' | 'part'>;
  /** Null: the target has ended. */
  said: AuditDetail | null;
}

const targetKey = ({ chain, target, part }: Target['facts']): string =>
  JSON.stringify([chain, target.kind, target.id, part]);

/** Returns the entry of an event, from the known values of its target, and the values after it. */
export function entryOf(
  event: AuditedEvent & Pick<StoredEvent, 'position' | 'recorded_at'>,
  { chain, account_id, action, actor, target, ends, said }: AuditFacts,
  known: AuditDetail | null,
): { entry: AuditEntry; now: AuditDetail | null } {
  const { id, type, position, metadata, recorded_at } = event;
  // An end records the previous values; members without a previous value keep their own.
  const news = Object.keys(said.members).filter((name) => !ends || !(name in (known?.members ?? {})));
  const after = news.length === 0 ? null : only(said, news);
  const before = known === null ? null : ends ? known : after && only(known, news);
  const { ip_sealed: sealed, ip_key: key } = metadata;
  const entry = {
    id,
    chain,
    account_id,
    action,
    actor,
    target,
    before: before && before.members,
    after: after && after.members,
    personal: {
      ...(before && placed('before', before.personal)),
      ...(after && placed('after', after.personal)),
      ...(sealed !== undefined && key !== undefined && { ip: { sealed, key, bound: ipContext(metadata) } }),
    },
    type,
    position,
    created_at: shownInstant(recorded_at),
  };
  return { entry, now: ends ? null : merged(known, said) };
}

/** Restricts the values to these members, with null for an unknown member. */
const only = ({ members, personal }: AuditDetail, names: readonly string[]): AuditDetail => ({
  members: Object.fromEntries(names.map((name) => [name, members[name] ?? null])),
  personal: Object.fromEntries(names.flatMap((name) => (personal[name] ? [[name, personal[name]]] : []))),
});

/** New values replace the known values of the same members. */
function merged(known: AuditDetail | null, said: AuditDetail): AuditDetail {
  if (known === null) return said;
  const kept = Object.entries(known.personal).filter(([name]) => !(name in said.members));
  return {
    members: { ...known.members, ...said.members },
    personal: { ...Object.fromEntries(kept), ...said.personal },
  };
}

const placed = (place: string, personal: AuditDetail['personal']): Record<string, Sealed> =>
  Object.fromEntries(Object.entries(personal).map(([name, value]) => [`${place}.${name}`, value]));

async function headsOf(found: readonly AuditRecord[], tx: Queryable): Promise<Map<string, Head>> {
  const chains = [...new Set(found.map(({ facts }) => facts.chain))];
  const rows = await tx.query<Head & { chain: string }>(
    'select chain, number, hash from audit_log_heads where chain = any($1)',
    [chains],
    'audit-log-heads',
  );
  return new Map(rows.map(({ chain, number, hash }) => [chain, { number, hash }]));
}

async function targetsOf(found: readonly AuditRecord[], tx: Queryable): Promise<Map<string, Target>> {
  const wanted = [...new Map(found.map(({ facts }) => [targetKey(facts), facts])).values()];
  const rows = await tx.query(
    `select t.* from unnest($1::text[], $2::text[], $3::text[], $4::text[]) as w (chain, kind, id, part)
     join audit_log_targets t using (chain, kind, id, part)`,
    targetNames(wanted),
    'audit-log-targets',
  );
  return new Map(
    rows.map(({ chain, kind, id, part, members, personal }) => {
      const facts = { chain, target: { kind, id }, part };
      return [targetKey(facts), { facts, said: { members: JSON.parse(members), personal: JSON.parse(personal) } }];
    }),
  );
}

const targetNames = (facts: readonly Target['facts'][]): string[][] => [
  facts.map(({ chain }) => chain),
  facts.map(({ target }) => target.kind),
  facts.map(({ target }) => target.id),
  facts.map(({ part }) => part),
];

const WRITE = `
  with entry as (
    insert into audit_log (chain, number, hash, id, account_id, action, actor_kind, actor_id, target_kind, target_id,
                           type, position, created_at, before, after, personal, acts_for)
    select * from unnest($1::text[], $2::bigint[], $3::text[], $4::uuid[], $5::text[], $6::text[], $7::text[],
                         $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], $13::timestamptz[],
                         $14::json[], $15::json[], $16::json[], $17::text[])
  ), head as (
    insert into audit_log_heads as h (chain, number, hash)
    select distinct on (chain) chain, number, hash
      from unnest($1::text[], $2::bigint[], $3::text[]) as n (chain, number, hash) order by chain, number desc
    on conflict (chain) do update set number = excluded.number, hash = excluded.hash
  ), target as (
    select * from unnest($18::text[], $19::text[], $20::text[], $21::text[], $22::json[], $23::json[])
      as t (chain, kind, id, part, members, personal)
  ), gone as (
    delete from audit_log_targets t using target n where n.members is null
      and t.chain = n.chain and t.kind = n.kind and t.id = n.id and t.part = n.part
  )
  insert into audit_log_targets (chain, kind, id, part, members, personal)
  select * from target where members is not null
  on conflict (chain, kind, id, part) do update set members = excluded.members, personal = excluded.personal`;

const json = (value: JsonObject | null): string | null => (value === null ? null : JSON.stringify(value));

const entryColumns = (rows: readonly (Head & { entry: AuditEntry })[]): unknown[] => [
  textArray(rows.map(({ entry }) => entry.chain)),
  rows.map(({ number }) => number),
  textArray(rows.map(({ hash }) => hash)),
  rows.map(({ entry }) => entry.id),
  textArray(rows.map(({ entry }) => entry.account_id)),
  textArray(rows.map(({ entry }) => entry.action)),
  textArray(rows.map(({ entry }) => entry.actor.kind)),
  textArray(rows.map(({ entry }) => entry.actor.id)),
  textArray(rows.map(({ entry }) => entry.target.kind)),
  textArray(rows.map(({ entry }) => entry.target.id)),
  textArray(rows.map(({ entry }) => entry.type)),
  textArray(rows.map(({ entry }) => entry.position)),
  rows.map(({ entry }) => entry.created_at),
  jsonArray(rows.map(({ entry }) => json(entry.before))),
  jsonArray(rows.map(({ entry }) => json(entry.after))),
  jsonArray(rows.map(({ entry }) => JSON.stringify(entry.personal))),
  textArray(rows.map(({ entry }) => entry.actor.acts_for ?? null)),
];

const targetColumns = (targets: readonly Target[]): unknown[] => [
  ...targetNames(targets.map(({ facts }) => facts)),
  jsonArray(targets.map(({ said }) => json(said && said.members))),
  jsonArray(targets.map(({ said }) => json(said && (said.personal as unknown as JsonObject)))),
];
