import { deadLettersOf, TOPICS } from '../../../domain/common/records';
import type { Broker } from '../../../engines/broker/port';
import type { StoredEvent } from '../../../engines/event-store/port';
import type { Database, Queryable } from '../../../engines/postgres/port';
import type { RelayCodec, RelayedDeadLetter } from '../../../engines/records/port';
import type { Upcasters } from '../../../kernel/upcasters';
import type { DeadLetter } from '../dead-letter/dead-letters';
import { relayedEvent } from './domain-event-relay';
import type { RelaySource } from './topic-relay';

export interface DeadLetterRelayDeps {
  db: Database;
  broker: Broker;
  codec: RelayCodec;
  upcasters: Upcasters;
}

const PAGE = 200;
const PAGE_BYTES = 4 * 1024 * 1024;
/** A single partition, because the records are few and keep their relay order in it. */
const PARTITIONS = 1;
const UNRELAYED = '(relayed_status is distinct from status or relayed_attempts <> attempts)';

/**
 * Relays the state of every dead letter at each pass: parked, failed again, retried, dropped. Records are keyed by the
 * letter, so that a compacted topic keeps its newest state. Letters that were relayed to another log are relayed again.
 */
export function deadLetterRelay(deps: DeadLetterRelayDeps): RelaySource {
  const { db, broker, codec, upcasters } = deps;
  const made = new Set<string>();
  const ensure = async (topics: readonly string[]) => {
    const missing = topics.filter((topic) => !made.has(topic));
    if (missing.length > 0) await broker.ensureTopics(missing, PARTITIONS, { limited: true });
    for (const topic of missing) made.add(topic);
  };

  return {
    name: 'dead-letters',
    async open() {
      await ensure(Object.values(TOPICS).map(deadLettersOf));
      await db.query(
        `update dead_letters set relayed_to = null, relayed_status = null, relayed_attempts = 0
         where relayed_to is not null and relayed_to <> $1`,
        [broker.id],
      );
    },
    async *waiting() {
      let after = 0;
      for (;;) {
        const letters = await unrelayed(db, after);
        if (letters.length === 0) return;
        const sources = [...new Set(letters.map(({ source }) => source))];
        await ensure(sources.map(deadLettersOf));
        for (const source of sources) {
          const some = letters.filter((letter) => letter.source === source);
          yield {
            topic: deadLettersOf(source),
            records: some.map((letter) => ({
              key: String(letter.id),
              value: codec.deadLetter(relayedLetter(letter, upcasters)),
            })),
            remember: (tx) => markRelayed(tx, some, broker.id),
          };
        }
        after = letters.at(-1)!.id;
      }
    },
    async lag() {
      const [row] = await db.query<{ behind: number; seconds: number }>(
        `select count(*) as behind,
           coalesce(
             extract(epoch from clock_timestamp() - min(greatest(last_failed_at, settled_at))), 0)::float8 as seconds
         from dead_letters where ${UNRELAYED}`,
      );
      return row!;
    },
  };
}

/**
 * Returns a page bounded by number and bytes, with at least one letter. Letters that are being settled at this moment
 * follow with their next state.
 */
function unrelayed(db: Queryable, after: number): Promise<DeadLetter[]> {
  return db.query<DeadLetter>(
    `with page as materialized (
       select id, coalesce(octet_length(record), 0) + coalesce(pg_column_size(event), 0) as bytes from dead_letters
       where ${UNRELAYED} and id > $1 order by id limit $2 for no key update skip locked
     ), bounded as (
       select id, bytes, sum(bytes) over (order by id) as upto from page
     )
     select d.* from bounded b join dead_letters d using (id) where b.upto - b.bytes <= $3 order by d.id`,
    [after, PAGE, PAGE_BYTES],
  );
}

/** Skips locked letters: a letter that is being settled gets another state anyway. */
async function markRelayed(tx: Queryable, letters: readonly DeadLetter[], broker_id: string): Promise<void> {
  await tx.query(
    `with free as (
       select id from dead_letters where id = any($1::bigint[]) order by id for no key update skip locked
     )
     update dead_letters d set relayed_to = $4, relayed_status = r.status, relayed_attempts = r.attempts
     from unnest($1::bigint[], $2::text[], $3::integer[]) r (id, status, attempts) join free using (id)
     where d.id = r.id`,
    [
      letters.map(({ id }) => id),
      letters.map(({ status }) => status),
      letters.map(({ attempts }) => attempts),
      broker_id,
    ],
  );
}

function relayedLetter(letter: DeadLetter, upcasters: Upcasters): RelayedDeadLetter {
  return {
    id: `${letter.id}.${letter.attempts}.${letter.status}`,
    letter_id: letter.id,
    status: letter.status,
    attempts: letter.attempts,
    projection: letter.projection,
    reason: letter.reason,
    // "TypeError: cannot read …", "DataError 22P02: invalid input …": what follows the kind may quote the data.
    error: letter.error.split(':', 1)[0]!,
    topic: letter.source,
    partition: letter.partition,
    position: letter.position,
    type: letter.type,
    account_id: letter.account_id,
    first_failed_at: letter.first_failed_at,
    last_failed_at: letter.last_failed_at,
    settled_at: letter.settled_at,
    record_key: letter.record_key,
    record: letter.record,
    event: letter.event === null ? null : relayedEvent(JSON.parse(letter.event) as StoredEvent, upcasters),
  };
}
